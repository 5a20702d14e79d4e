// Writes a file as a whole, or not at all. The text goes into a file beside it, whose name ends with .partial and six
// characters. Only finish() gives it the wanted name, after all of it is durable. Without finish() it is removed. Only
// the owner may read it.
//
// Thread safety: none.
#pragma once

#include <string>
#include <string_view>

namespace kilokv::client {

// What is wrong with a file, for the user. Empty: nothing.
using FileProblem = std::string;

// "cannot <what> <path>: <reason>".
FileProblem file_problem(const char* what, const std::string& path, const std::string& reason);
// The same with the reason of errno.
FileProblem file_problem(const char* what, const std::string& path);

// Writes all of the text. `path` is for the message.
[[nodiscard]] FileProblem write_all(int descriptor, std::string_view text, const std::string& path);

// Makes the name of a file durable, which is part of its folder.
[[nodiscard]] FileProblem sync_folder_of(const std::string& path);

class FileOutput {
 public:
  FileOutput() = default;
  ~FileOutput();
  FileOutput(const FileOutput&) = delete;
  FileOutput& operator=(const FileOutput&) = delete;

  // Refuses a name that something has which is no regular file.
  [[nodiscard]] FileProblem open(const std::string& path);
  [[nodiscard]] FileProblem write(std::string_view text) { return write_all(descriptor_, text, path_); }
  [[nodiscard]] FileProblem finish();

 private:
  std::string path_, partial_;
  int descriptor_ = -1;
};

}  // namespace kilokv::client
