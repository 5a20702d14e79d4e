// What Ctrl-C (SIGINT) and SIGTERM do to the load tester. As long as there is nothing to report, the first signal ends
// the process. After hold(), the first signal is only noted: the run ends early, and is checked and reported. The
// second signal always ends the process at once. After an end by a signal, the exit code is 128 plus the signal, as in
// a shell.
//
// This state belongs to the whole process, because signals do. Thread safety: any thread.
#pragma once

namespace kilokv::bench::interrupt {

void install();  // installs the handlers; once, at the start
void hold();     // from now on there is something to report
int received();  // the signal that was noted; 0: none
int exit_code(int signal);

}  // namespace kilokv::bench::interrupt
