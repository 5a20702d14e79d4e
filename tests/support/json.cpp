#include "tests/support/json.hpp"

#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

namespace kilokv {

struct Json::Value {
  nlohmann::json json;
};

template <class T>
std::shared_ptr<const Json::Value> Json::make(T&& value) {
  return std::make_shared<const Value>(Value{nlohmann::json(std::forward<T>(value))});
}

Json::Json(std::shared_ptr<const Value> value) : value_(std::move(value)) {}
Json::Json(bool value) : value_(make(value)) {}
Json::Json(int value) : value_(make(value)) {}
Json::Json(std::int64_t value) : value_(make(value)) {}
Json::Json(std::uint64_t value) : value_(make(value)) {}
Json::Json(double value) : value_(make(value)) {}
Json::Json(const char* value) : value_(make(value)) {}
Json::Json(const std::string& value) : value_(make(value)) {}

Json Json::parse(std::string_view text) { return Json(make(nlohmann::json::parse(text))); }

Json Json::operator[](const char* field) const { return Json(make(value_->json.at(field))); }
Json Json::operator[](int index) const { return Json(make(value_->json.at(static_cast<std::size_t>(index)))); }
std::vector<Json> Json::elements() const {
  std::vector<Json> elements;
  for (const nlohmann::json& element : value_->json) elements.push_back(Json(make(element)));
  return elements;
}
std::int64_t Json::integer() const { return value_->json.get<std::int64_t>(); }
double Json::number() const { return value_->json.get<double>(); }
std::string Json::text() const { return value_->json.get<std::string>(); }

std::size_t Json::size() const { return value_->json.size(); }
bool Json::contains(const char* field) const { return value_->json.contains(field); }
bool Json::is_null() const { return value_->json.is_null(); }
bool Json::is_object() const { return value_->json.is_object(); }
Json Json::without(std::initializer_list<const char*> fields) const {
  nlohmann::json rest = value_->json;
  for (const char* field : fields) rest.erase(field);
  return Json(make(std::move(rest)));
}

bool operator==(const Json& a, const Json& b) { return a.value_->json == b.value_->json; }
std::ostream& operator<<(std::ostream& out, const Json& json) { return out << json.value_->json.dump(); }

}  // namespace kilokv
