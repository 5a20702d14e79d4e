// What Ctrl-C (SIGINT) and SIGTERM do to a program. As long as there is nothing to end in order, the first signal ends
// the process. After hold(), the first signal is only noted: the program ends early, and tells what it has done. The
// second signal always ends the process at once. After an end by a signal, the exit code is 128 plus the signal, as in
// a shell.
//
// This state belongs to the whole process, because signals do. Thread safety: any thread.
#pragma once

namespace kilokv::client::interrupt {

// What is printed on standard error when a signal comes. Each text is a whole line.
struct Lines {
  const char* ended;         // before hold(): the process ends
  const char* noted;         // after hold()
  const char* ended_second;  // the second signal after hold(): the process ends
};

// Installs the handlers; once, at the start. Requires: the lines live as long as the process.
void install(const Lines& lines);
void hold();     // from now on there is something to end in order
int received();  // the signal that was noted; 0: none
int exit_code(int signal);

// From now on, a write to a pipe that nobody reads any more fails, and the program can tell. Without it, SIGPIPE ends
// the process.
void ignore_broken_pipes();

}  // namespace kilokv::client::interrupt
