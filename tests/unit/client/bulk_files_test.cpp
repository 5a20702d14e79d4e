// The files of export and import: input by lines, output as a whole, bad lines, and the position.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "client/cli/bulk/bad_lines.hpp"
#include "client/cli/bulk/file_output.hpp"
#include "client/cli/bulk/line_input.hpp"
#include "client/cli/bulk/position.hpp"
#include "tests/support/test_folder.hpp"

namespace kilokv::client {
namespace {

using Got = LineInput::Got;

std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

unsigned mode_of(const std::string& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 0777u : 0;
}

std::size_t files_in(const std::string& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

class Pipe {
 public:
  Pipe() { EXPECT_EQ(::pipe(ends_), 0); }
  ~Pipe() {
    close_writer();
    ::close(ends_[0]);
  }
  int reader() const { return ends_[0]; }
  void write(const std::string& text) const {
    EXPECT_EQ(::write(ends_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void close_writer() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  int ends_[2] = {-1, -1};
};

TEST(LineInput, LinesComeWithTheirNewlines) {
  const test::TestFolder folder;
  const std::string long_line(3'000'000, 'x');
  const std::string path = folder.write("in", "a\n\nb\r\n" + long_line + "\nlast");
  const int descriptor = ::open(path.c_str(), O_RDONLY);
  LineInput input(descriptor);
  EXPECT_EQ(input.size(), std::filesystem::file_size(path));
  std::string_view line;
  for (const std::string& wanted :
       {std::string("a\n"), std::string("\n"), std::string("b\r\n"), long_line + "\n", std::string("last")}) {
    ASSERT_EQ(input.next(&line), Got::line);
    ASSERT_EQ(line, wanted);
  }
  EXPECT_EQ(input.next(&line), Got::end);
  EXPECT_EQ(input.next(&line), Got::end);
  ::close(descriptor);
}

TEST(LineInput, BytesAndLinesCanBeMixed) {
  const test::TestFolder folder;
  const int descriptor = ::open(folder.write("in", "header\nsome bytes\nrest\n").c_str(), O_RDONLY);
  LineInput input(descriptor);
  std::string_view text;
  ASSERT_EQ(input.next(&text), Got::line);
  ASSERT_EQ(input.next_bytes(5, &text), Got::line);
  EXPECT_EQ(text, "some ");
  ASSERT_EQ(input.next(&text), Got::line);
  EXPECT_EQ(text, "bytes\n");
  ASSERT_EQ(input.next_bytes(100, &text), Got::line);
  EXPECT_EQ(text, "rest\n");
  EXPECT_EQ(input.next_bytes(100, &text), Got::end);
  ::close(descriptor);
}

TEST(LineInput, ASilentPipeIsIdle) {
  Pipe pipe;
  LineInput input(pipe.reader(), 1);
  std::string_view line;
  EXPECT_EQ(input.next(&line), Got::idle);
  pipe.write("ha");
  EXPECT_EQ(input.next(&line), Got::idle);
  pipe.write("lf\nnext");
  ASSERT_EQ(input.next(&line), Got::line);
  EXPECT_EQ(line, "half\n");
  pipe.close_writer();
  ASSERT_EQ(input.next(&line), Got::line);
  EXPECT_EQ(line, "next");
  EXPECT_EQ(input.next(&line), Got::end);
}

TEST(LineInput, AFolderCannotBeRead) {
  const test::TestFolder folder;
  const int descriptor = ::open(folder.path("").c_str(), O_RDONLY);
  LineInput input(descriptor);
  std::string_view line;
  EXPECT_EQ(input.next(&line), Got::failed);
  ::close(descriptor);
}

TEST(FileOutput, AFileIsThereAsAWholeOrNotAtAll) {
  const test::TestFolder folder;
  const std::string path = folder.write("out", "old");
  {
    FileOutput out;
    ASSERT_EQ(out.open(path), "");
    ASSERT_EQ(out.write("half"), "");
    EXPECT_EQ(content_of(path), "old");
    EXPECT_EQ(files_in(folder.path("")), 2u);
  }
  EXPECT_EQ(content_of(path), "old");
  EXPECT_EQ(files_in(folder.path("")), 1u) << "the partial file stays";
  FileOutput out;
  ASSERT_EQ(out.open(path), "");
  ASSERT_EQ(out.write("whole"), "");
  ASSERT_EQ(out.finish(), "");
  EXPECT_EQ(content_of(path), "whole");
  EXPECT_EQ(mode_of(path), 0600u);
  EXPECT_EQ(files_in(folder.path("")), 1u);
}

TEST(FileOutput, OtherThingsAreNotReplaced) {
  const test::TestFolder folder;
  std::filesystem::create_directory(folder.path("sub"));
  FileOutput sub, missing;
  EXPECT_NE(sub.open(folder.path("sub")).find("is not a regular file"), std::string::npos);
  EXPECT_NE(missing.open(folder.path("none/out")).find("No such file"), std::string::npos);
}

TEST(BadLines, AnImportThatContinuesKeepsWhatIsBeforeItsPosition) {
  const test::TestFolder folder;
  const std::string path = folder.path("bad");
  {
    BadLines lines("pos\xff");
    ASSERT_EQ(lines.create(path), "");
    EXPECT_EQ(mode_of(path), 0600u);
    ASSERT_EQ(lines.add(20, "later", "l20\n"), "");
    ASSERT_EQ(lines.add(3, "the key is empty", ",\"5\"\n"), "");
    ASSERT_EQ(lines.add(9, "not UTF-8", "a\xff\n"), "");
    ASSERT_EQ(lines.sync(), "");
    EXPECT_EQ(lines.count(), 3u);
  }
  std::ofstream(path, std::ios::app) << "{\"line\": 4, \"prob";  // killed while it wrote
  BadLines other("another");
  EXPECT_NE(other.resume(path, 9), "");
  BadLines lines("pos\xff");
  ASSERT_EQ(lines.resume(path, 9), "");
  EXPECT_EQ(lines.count(), 1u);
  ASSERT_EQ(lines.add(9, "again", "a\n"), "");
  EXPECT_EQ(content_of(path),
            "{\"line\": 3, \"problem\": \"the key is empty\", \"text\": \",\\\"5\\\"\\n\", \"position_key\": {\"b64\": "
            "\"cG9z/w==\"}}\n"
            "{\"line\": 9, \"problem\": \"again\", \"text\": \"a\\n\", \"position_key\": {\"b64\": \"cG9z/w==\"}}\n");
}

TEST(BadLines, AFileThatIsThereIsNotTouched) {
  const test::TestFolder folder;
  const std::string path = folder.write("bad", "a letter\n");
  BadLines fresh(""), continued("pos");
  EXPECT_NE(fresh.create(path).find("move it away"), std::string::npos);
  EXPECT_NE(continued.resume(path, 1).find("does not have the bad lines of this import"), std::string::npos);
  EXPECT_EQ(content_of(path), "a letter\n");
  folder.write("bad", "a letter without an end");
  EXPECT_NE(continued.resume(path, 1).find("does not have the bad lines of this import"), std::string::npos);
  EXPECT_EQ(content_of(path), "a letter without an end");
  EXPECT_EQ(files_in(folder.path("")), 1u);
  BadLines missing("pos");
  EXPECT_EQ(missing.resume(folder.path("new"), 1), "");
}

TEST(Position, ItsTextIsReadBack) {
  InputPlace place;
  place.line = 1001;
  place.bytes = 34567;
  place.digest.add("some bytes");
  const PositionOptions options{"csv with the columns a\"b and c", "keep", "0123"};
  const std::string text = position_text(options, place);
  const auto position = parse_position(text);
  ASSERT_TRUE(position);
  EXPECT_EQ(position->options.records, options.records);
  EXPECT_EQ(position->options.existing, "keep");
  EXPECT_EQ(position->options.run, "0123");
  EXPECT_EQ(position->line, 1001u);
  EXPECT_EQ(position->bytes, 34567u);
  EXPECT_EQ(position->digest, place.digest.text());
  EXPECT_EQ(position_text(*position, "0123"), text);
  EXPECT_NE(position_text(*position, "4567"), text);
  for (const char* other : {"", "5", "{}", "[]", "{\"format\": \"kilokv-import-1\"}", "{\"line\": "}) {
    EXPECT_FALSE(parse_position(other)) << other;
  }
  std::string newer = text;
  newer.replace(newer.find("import-1"), 8, "import-2");
  EXPECT_FALSE(parse_position(newer));
}

TEST(Position, TheDigestIsThatOfAllBytes) {
  Digest parts, whole;
  parts.add("ab");
  const Digest before = parts;
  parts.add("c");
  whole.add("abc");
  EXPECT_EQ(parts.text(), whole.text());
  EXPECT_NE(before.text(), whole.text());
  EXPECT_EQ(whole.text().size(), 32u);
  EXPECT_NE(new_run(), new_run());
}

}  // namespace
}  // namespace kilokv::client
