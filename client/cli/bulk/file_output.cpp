// Role: see file_output.hpp.
#include "client/cli/bulk/file_output.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace kilokv::client {

FileProblem file_problem(const char* what, const std::string& path, const std::string& reason) {
  return std::string("cannot ") + what + " " + path + ": " + reason;
}

FileProblem file_problem(const char* what, const std::string& path) {
  return file_problem(what, path, std::generic_category().message(errno));
}

FileProblem write_all(int descriptor, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t size = ::write(descriptor, text.data(), text.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return file_problem("write", path);
    text.remove_prefix(static_cast<std::size_t>(size));
  }
  return {};
}

FileProblem sync_folder_of(const std::string& path) {
  const std::string folder = std::filesystem::absolute(path).parent_path();
  const int opened = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) return file_problem("write", path);
  FileProblem problem = ::fsync(opened) == 0 ? FileProblem() : file_problem("write", path);
  ::close(opened);
  return problem;
}

FileOutput::~FileOutput() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(partial_.c_str());
}

FileProblem FileOutput::open(const std::string& path) {
  path_ = path;
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    return file_problem("write", path, "it is not a regular file; without a file name, standard output is written");
  }
  partial_ = path + ".partial.XXXXXX";
  descriptor_ = ::mkostemp(partial_.data(), O_CLOEXEC);  // its mode is 0600
  return descriptor_ < 0 ? file_problem("write", path) : FileProblem();
}

FileProblem FileOutput::finish() {
  if (::fsync(descriptor_) != 0) return file_problem("write", path_);
  if (::rename(partial_.c_str(), path_.c_str()) != 0) return file_problem("write", path_);
  ::close(descriptor_);
  descriptor_ = -1;
  return sync_folder_of(path_);
}

}  // namespace kilokv::client
