// What a start refuses before it touches the data directory or a port: --check-config runs the same checks.
// Thread safety: none; main() uses it before it starts threads.
#pragma once

#include <functional>
#include <string>

#include "engine/base/status.hpp"
#include "server/config.hpp"

namespace kilokv::server {

// What a server lacks that other machines may reach, such as "no logins (--login on)". Empty: nothing.
std::string lacks_for_other_machines(const ServiceOptions& options);

// FAILED_PRECONDITION: this address is for other machines, and the server lacks something for them. `setting`: the one
// with the address.
Status check_other_machines(const ServerOptions& options, const std::string& setting, const std::string& listen);

// Whether a start would go on to its port and its data directory. Reads the files of TLS, and asks for the addresses of
// the hosts to listen on. Makes no file. `warn` gets what the start would only warn of. The error is that of the start.
Status check_start(const ServerOptions& options, const std::function<void(const std::string& what)>& warn);

}  // namespace kilokv::server
