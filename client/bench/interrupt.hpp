// What Ctrl-C (SIGINT) and SIGTERM do to the load tester. Before there is anything to report, the first signal ends the
// process. From hold() on, the first signal is only noted: the run ends early, is checked and reported. The second one
// always ends the process at once. The exit code of an end by a signal is 128 plus the signal, as shells count it.
//
// Signals belong to the whole process, and so does this. Thread safety: all of it.
#pragma once

namespace kilokv::bench::interrupt {

void install();  // the handlers; once, at the start
void hold();     // there is something to report
int received();  // the signal that was noted; 0: none
int exit_code(int signal);

}  // namespace kilokv::bench::interrupt
