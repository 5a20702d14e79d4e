// A new folder for the data of a program's own server. Thread safety: none.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "kilokv/error.hpp"

namespace kilokv::own_server {

class TemporaryFolder {
 public:
  // Makes `<prefix>-XXXXXX` in the folder for temporary files ($TMPDIR, else /tmp). Only the user can read it.
  static client::Expected<std::unique_ptr<TemporaryFolder>> make(const std::string& prefix);
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();  // removes the folder with all that is in it, unless it is to be kept

  const std::string& path() const { return path_; }
  void keep(bool keep = true) { keep_ = keep; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}

  const std::string path_;
  bool keep_ = false;
};

}  // namespace kilokv::own_server
