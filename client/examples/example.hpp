// What the examples share: the command line, the connection, and the values of reads.
//
//   PROGRAM [--endpoint HOST:PORT] VERB ARGUMENT...   runs one command
//   PROGRAM [--endpoint HOST:PORT]                    runs the commands that standard input has, one in each line
//
// Each command prints one line. Each command may be sent again, also by another process, after any crash:
// docs/recipes.md says why. The exit code is 0 if no command ended with an error, 1 if one did or no server was there,
// and 2 if the flags are wrong.
#pragma once

#include <charconv>
#include <cstdint>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "kilokv/client.hpp"

namespace example {

using namespace kilokv::client;  // NOLINT: a program of one file

using Words = std::vector<std::string>;  // the verb and its arguments

struct Server {
  Client& client;
  Session&
      session;  // the server applies each of its requests once, also if the connection breaks or the server restarts
};
// Returns the line to print.
using Command = std::function<Expected<std::string>(const Server& server, const Words& words)>;

inline Error misuse(const std::string& message) {
  Error error;
  error.code = ErrorCode::invalid_argument;
  error.message = message;
  return error;
}

inline Error wrong_command() { return misuse("no such command, or wrong arguments: see --help"); }

// The integer of a word, or nothing if the word is no integer.
inline std::optional<std::int64_t> integer_of(std::string_view word) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return number;
}

// The integers of the words from `first` on. Nothing if one of them is no integer.
inline std::optional<std::vector<std::int64_t>> integers_of(const Words& words, std::size_t first) {
  std::vector<std::int64_t> numbers;
  for (std::size_t i = first; i < words.size(); ++i) {
    const std::optional<std::int64_t> number = integer_of(words[i]);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

// The value of a read. An absent key counts as 0, and as no text.
inline std::int64_t integer_in(const ReadView& read) {
  const auto* integer = std::get_if<std::int64_t>(&read.value);
  return integer == nullptr ? 0 : *integer;
}
inline std::string text_in(const ReadView& read) {
  const auto* text = std::get_if<std::string_view>(&read.value);
  return text == nullptr ? std::string() : std::string(*text);
}

// The end of the range of all keys that begin with `prefix`, which ends with a slash.
inline std::string end_of(std::string prefix) {
  prefix.back() = '/' + 1;
  return prefix;
}

inline bool is_session_gone(const Error& error) {
  return error.code == ErrorCode::failed_precondition && error.reason == "SESSION_UNKNOWN";
}

class Runner {
 public:
  Runner(Client* client, const Command& command) : client_(client), command_(command) {}

  // Runs a command and prints its line. Returns whether it ended without an error.
  bool run(const Words& words) {
    Expected<std::string> line = run_once(words);
    // A program that slept for longer than the lease of its session has lost it. The command may have run before. It
    // may be sent again, because keys in the database tell whether it ran, and not only the session.
    if (!line && is_session_gone(line.error())) {
      session_.reset();
      line = run_once(words);
    }
    if (line) {
      std::cout << *line << std::endl;
    } else {
      std::cout << "error " << to_string(line.error().code) << ": " << line.error().message << std::endl;
    }
    return line.ok();
  }

 private:
  Expected<std::string> run_once(const Words& words) {
    // A slash ends each part of a key. Names with slashes could give the keys of other names.
    for (const std::string& word : words) {
      if (word.find('/') != std::string::npos) return misuse("a name has no slash: " + word);
    }
    if (session_ == nullptr) {
      Expected<std::unique_ptr<Session>> session = client_->open_session();
      if (!session) return session.error();
      session_ = std::move(*session);
    }
    return command_({*client_, *session_}, words);
  }

  Client* const client_;
  const Command& command_;
  std::unique_ptr<Session> session_;
};

inline int main_of(int argc, char** argv, const char* usage, const Command& command) {
  Words words(argv + 1, argv + argc);
  ClientOptions options;
  options.wait_for_server_us = 30'000'000;  // the server may be starting again
  if (!words.empty() && words[0] == "--help") {
    std::cout << usage;
    return 0;
  }
  if (!words.empty() && words[0].starts_with("--")) {
    if (words[0] != "--endpoint" || words.size() < 2) {
      std::cerr << usage;
      return 2;
    }
    options.endpoint = words[1];
    words.erase(words.begin(), words.begin() + 2);
  }
  const Expected<std::unique_ptr<Client>> client = Client::connect(options);
  if (!client) {
    std::cerr << "no server: " << to_string(client.error().code) << ": " << client.error().message << "\n";
    return 1;
  }
  Runner runner(client->get(), command);
  if (!words.empty()) return runner.run(words) ? 0 : 1;
  bool is_good = true;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream split(line);
    words.clear();
    for (std::string word; split >> word;) words.push_back(word);
    if (!words.empty()) is_good = runner.run(words) && is_good;
  }
  return is_good ? 0 : 1;
}

}  // namespace example
