// The adapter of the C++ client for the conformance test (README.md). Each call has a thread of its own, because a call
// can wait on the server for long.
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "tests/conformance/adapters/cpp/adapter.hpp"

int main() {
  using kilokv::conformance::Json;
  // The threads outlive main(), so they must find both.
  static auto& adapter = *new kilokv::conformance::Adapter();
  static auto& writing = *new std::mutex();
  for (std::string line; std::getline(std::cin, line);) {
    std::thread([call = Json::parse(line)] {
      Json answer = adapter.answer(call);
      answer["id"] = call.at("id");
      const std::lock_guard lock(writing);
      std::cout << answer.dump() << '\n' << std::flush;
    }).detach();
  }
  std::_Exit(EXIT_SUCCESS);  // a call may still wait
}
