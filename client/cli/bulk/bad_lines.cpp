// Role: see bad_lines.hpp.
#include "client/cli/bulk/bad_lines.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "client/cli/bulk/file_output.hpp"
#include "client/cli/bulk/pair_text.hpp"

namespace kilokv::client {
namespace {

constexpr std::size_t kWriteBytes = std::size_t{1} << 20;
constexpr std::string_view kLineBegin = "{\"line\": ";

// Copies a file of bad lines without the lines that an import will meet again. It takes one line at a time, because
// the file may be large.
class Copy {
 public:
  Copy(const std::string& path, const std::string& position_key, std::uint64_t line_end)
      : path_(path), line_end_(line_end), in_(path, std::ios::binary) {
    std::string key;
    append_json_bytes(position_key, &key);
    position_key_ = nlohmann::json::parse(key);
  }

  FileProblem run() {
    if (!in_.is_open()) return file_problem("read", path_);
    if (FileProblem problem = out_.open(path_); !problem.empty()) return problem;
    for (std::string line; std::getline(in_, line);) {
      const bool is_whole = !in_.eof();
      if (FileProblem problem = is_whole ? take(line) : check_cut_off(line); !problem.empty()) return problem;
    }
    if (in_.bad()) return file_problem("read", path_);
    if (FileProblem problem = write(); !problem.empty()) return problem;
    return out_.finish();
  }
  std::uint64_t count() const { return count_; }  // lines that were copied

 private:
  FileProblem take(const std::string& line) {
    const auto number = number_of(line);
    if (!number) return other_file();
    if (*number >= line_end_) return {};
    ++count_;
    text_.append(line).push_back('\n');
    return text_.size() < kWriteBytes ? FileProblem() : write();
  }

  // A last line without its newline was not written completely, and is dropped.
  FileProblem check_cut_off(std::string_view line) const {
    return line.starts_with(kLineBegin) || kLineBegin.starts_with(line) ? FileProblem() : other_file();
  }
  FileProblem other_file() const {
    return file_problem("use", path_, "it exists, and does not have the bad lines of this import; name another file");
  }

  // The number of the bad line. Empty: this is no line about an import with this position key.
  std::optional<std::uint64_t> number_of(const std::string& text) const {
    const nlohmann::json fields = nlohmann::json::parse(text, nullptr, false);
    if (!fields.is_object()) return std::nullopt;
    const auto line = fields.find("line"), key = fields.find("position_key");
    if (line == fields.end() || !line->is_number_unsigned()) return std::nullopt;
    if (key == fields.end() || *key != position_key_) return std::nullopt;
    return line->get<std::uint64_t>();
  }

  FileProblem write() {
    FileProblem problem = out_.write(text_);
    text_.clear();
    return problem;
  }

  const std::string path_;
  const std::uint64_t line_end_;
  std::ifstream in_;
  nlohmann::json position_key_;
  FileOutput out_;
  std::string text_;  // that is not written yet
  std::uint64_t count_ = 0;
};

}  // namespace

BadLines::~BadLines() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

FileProblem BadLines::open(const std::string& path, int flags) {
  path_ = path;
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | flags, S_IRUSR | S_IWUSR);
  return descriptor_ < 0 ? file_problem("write", path) : FileProblem();
}

FileProblem BadLines::check_new(const std::string& path) {
  struct stat status = {};
  if (::lstat(path.c_str(), &status) != 0) return {};
  return file_problem("write", path, "it exists; move it away, or name another file");
}

FileProblem BadLines::create(const std::string& path) {
  if (FileProblem problem = check_new(path); !problem.empty()) return problem;
  const FileProblem problem = open(path, O_CREAT | O_EXCL);
  return problem.empty() ? sync_folder_of(path) : problem;
}

FileProblem BadLines::resume(const std::string& path, std::uint64_t line) {
  if (check_new(path).empty()) return create(path);
  Copy copy(path, position_key_, line);
  if (FileProblem problem = copy.run(); !problem.empty()) return problem;
  count_ = copy.count();
  return open(path, 0);
}

FileProblem BadLines::add(std::uint64_t line, std::string_view problem, std::string_view text) {
  std::string out(kLineBegin);
  out.append(std::to_string(line)).append(", \"problem\": ");
  append_json_bytes(problem, &out);
  out.append(", \"text\": ");
  append_json_bytes(text, &out);
  if (!position_key_.empty()) {
    out.append(", \"position_key\": ");
    append_json_bytes(position_key_, &out);
  }
  out.append("}\n");
  ++count_;
  is_dirty_ = true;
  return write_all(descriptor_, out, path_);
}

FileProblem BadLines::sync() {
  if (!is_dirty_) return {};
  is_dirty_ = false;
  return ::fdatasync(descriptor_) == 0 ? FileProblem() : file_problem("write", path_);
}

}  // namespace kilokv::client
