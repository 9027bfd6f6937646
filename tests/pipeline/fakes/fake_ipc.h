// This is device memory of the fake CUDA runtime (fake_cuda.h), with its rules between processes. Each thread
// may count as a process of its own. Then memory and events of another one are used only by opening their
// handles, memory that is opened lies at another address, and neither is let go of while somebody has it.
// What breaks a rule without being an error of a call is noted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace antichain::test::fake_cuda {

struct IpcRules {
  bool threads_are_processes = false;
  bool refused = false;          // no memory can be opened, as in containers that share nothing
  bool opens_the_first = false;  // every handle of a process opens what it allocated first
  bool peer_access = true;       // between devices, within a process
  bool forgets_waits = false;    // for other ranks' events, in streams that do not compute
};
void ipc(IpcRules);  // for all threads
// Returns memory as cudaMalloc does. It holds zeros.
std::shared_ptr<std::byte> device_memory(int64_t bytes);
int opened();                             // by all processes, now
std::vector<std::string> broken_rules();  // since the last call

// For the stand-ins themselves.
int this_process();
void break_rule(const std::string&);
void check_address(const void*);
bool forgets_waits();

}  // namespace antichain::test::fake_cuda
