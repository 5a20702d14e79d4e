// A JSON value for tests. A file that includes nlohmann/json.hpp compiles for seconds, so of the tests only json.cpp
// does. Thread safety: values may be read by several threads.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kilokv {

class Json {
 public:
  // Throws if the text is no JSON, or if more follows.
  static Json parse(std::string_view text);
  // What a test compares a value with.
  Json(bool value);
  Json(int value);
  Json(std::int64_t value);
  Json(std::uint64_t value);
  Json(double value);
  Json(const char* value);
  Json(const std::string& value);

  // These throw if there is no such field or element, or if the value has another type.
  Json operator[](const char* field) const;
  Json operator[](int index) const;
  std::vector<Json> elements() const;
  std::int64_t integer() const;
  double number() const;
  std::string text() const;

  std::size_t size() const;  // of an array or an object
  bool contains(const char* field) const;
  bool is_null() const;
  bool is_object() const;
  Json without(std::initializer_list<const char*> fields) const;  // they may be absent

  // Numbers are equal by their value: 2 and 2.0 are.
  friend bool operator==(const Json& a, const Json& b);
  friend std::ostream& operator<<(std::ostream& out, const Json& json);

 private:
  struct Value;
  explicit Json(std::shared_ptr<const Value> value);
  template <class T>
  static std::shared_ptr<const Value> make(T&& value);
  std::shared_ptr<const Value> value_;
};

}  // namespace kilokv
