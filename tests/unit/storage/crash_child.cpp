// The process that child_process.hpp starts: crash_child TASK DIRECTORY.
//   append      appends sample batches 1 to 20 and prints a byte after each
//   checkpoint  a checkpoint, more batches, a second checkpoint
//   hold        opens the log, prints a byte, and keeps it until its input ends
#include <unistd.h>

#include <cstdio>
#include <string>

#include "tests/unit/storage/checkpoint_fixture.hpp"
#include "tests/unit/storage/log_fixture.hpp"

using namespace kilokv::server::storage;

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string task = argv[1];
  OpenLog log(options_for(argv[2]));
  if (!log.log) return 2;
  if (task == "append") {
    for (kilokv::BatchNumber number = 1; number <= 20; ++number) {
      log.append(number, number);
      if (write(STDOUT_FILENO, "a", 1) != 1) return 2;
    }
  } else if (task == "checkpoint") {
    log.append(1, 10);
    if (!checkpoint(log.log.get(), 8, 8, 4).ok()) return 2;
    log.append(11, 30);
    if (!checkpoint(log.log.get(), 25, 28, 6).ok()) return 2;
  } else if (task == "hold") {
    char byte = 'y';
    if (write(STDOUT_FILENO, &byte, 1) != 1) return 2;
    while (read(STDIN_FILENO, &byte, 1) == 1) continue;
  }
  return 0;
}
