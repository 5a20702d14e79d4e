// Role: see secrets.hpp.
#include "client/command_line/secrets.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace kilokv::client {
namespace {

Error wrong(ErrorCode code, const std::string& source, const std::string& problem) {
  Error error;
  error.code = code;
  error.message = source + ": " + problem;
  return error;
}

// The name of a new file is durable only then.
bool sync_folder_of(const std::string& file) {
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  const int in = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (in < 0) return errno == EACCES;                       // it may be written to, and not be read
  const bool synced = ::fsync(in) == 0 || errno == EINVAL;  // EINVAL: the file system knows no such sync
  ::close(in);
  return synced;
}

}  // namespace

std::string environment_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): nothing sets it
  return value == nullptr ? "" : value;
}

Error read_secret(const SecretSource& source, const std::string& file, std::string* secret) {
  const std::string named = environment_variable(source.file_variable), path = file.empty() ? named : file;
  if (path.empty()) {
    *secret = environment_variable(source.variable);
    return {};
  }
  const std::string where =
      file.empty() ? std::string("the environment variable ") + source.file_variable : source.flag;
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  secret->assign(std::istreambuf_iterator<char>(in), {});
  if (!in.is_open() || in.bad()) {
    return wrong(ErrorCode::failed_precondition, where,
                 "cannot read " + path + ": " + std::generic_category().message(errno));
  }
  secret->erase(secret->find_last_not_of(" \r\n") + 1);
  if (secret->empty()) {
    return wrong(ErrorCode::invalid_argument, where, path + " is empty, and should hold " + source.what);
  }
  return {};
}

bool write_secret(const std::string& file, const std::string& line) {
  const int out = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (out < 0) return false;
  const bool written = ::write(out, line.data(), line.size()) == static_cast<ssize_t>(line.size()) && ::fsync(out) == 0;
  const bool closed = ::close(out) == 0;
  if (written && closed && sync_folder_of(file)) return true;
  const int why = errno;
  ::unlink(file.c_str());  // a part of a secret is of no use, and would be in the way of the next try
  errno = why;
  return false;
}

}  // namespace kilokv::client
