// A folder of a test. The destructor removes it.
// Thread safety: none.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace kilokv::test {

class TestFolder {
 public:
  TestFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "kilokv-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  std::string path(const std::string& name) const { return (path_ / name).string(); }
  // Writes a draft, and renames it. So the file has another inode each time.
  std::string write(const std::string& name, const std::string& content) const {
    const std::string draft = path("draft");
    std::ofstream(draft) << content;
    std::filesystem::rename(draft, path(name));
    return path(name);
  }

 private:
  std::filesystem::path path_;
};

}  // namespace kilokv::test
