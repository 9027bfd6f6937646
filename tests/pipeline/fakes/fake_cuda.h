// These stand-ins for the CUDA runtime and NCCL are linked in their place, so that the very code of
// pipeline/cuda runs without a device.
//
// A thread of its own does what is in the streams, each in order, and picks among streams at random. By the
// seed, computing is late, or copies and messages are, or neither, so whatever was not told to wait may come
// too early. NCCL's rules are kept. A send stays at the head of its stream until the peer's recv heads the
// peer's. A group is brought there by a thread of its own, after a while. A first message between two ranks
// connects them, which needs both. Communicators know nothing of each other. Sending to oneself alone is an
// error. Messages have no names. What is aborted ends, and looks done. Each thread has a device of its own,
// as ranks over NCCL have. Every NCCL call is recorded. Page-locked memory that is freed is spoilt at once,
// because it may belong to somebody else by then.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

struct CUstream_st;

namespace antichain::test::fake_cuda {

CUstream_st* make_stream();
// Work of the test's own; `takes_s` of the device's clock, where it keeps one. As libraries do that look at
// CUDA's last error, it fails where the thread has one that another call has left behind.
void launch(CUstream_st*, std::function<void()> kernel, double takes_s = 0);
int launched();            // so far, in all streams
void drain();              // waits until this thread's streams have no work left
void drain(CUstream_st*);  // only this one
void hold(CUstream_st*);   // the device does nothing of it until it is let go
void let_go(CUstream_st*);
int priority(CUstream_st*);  // the less the sooner
int waits(CUstream_st*);     // how often the host waited for the stream or an event in it, by CUDA's calls
std::vector<std::string> broken_rules();  // since the last call, where the call was no error by itself
int freed_in_use();                       // page-locked memory, while a stream of the thread had work left

// Graphs: what is launched into a stream that records is not done; a recording's work is done whenever it is
// launched. Events, waits and allocations of a thread spoil what it records.
int graph_launches();
void allocates();                          // says the test's own allocator
void break_rule(const std::string&);       // says a stand-in
void spoil_recordings(std::set<int> nth);  // those from now on, 1 being the next: they end with an error

// Returns the calls of one rank since the last reset, such as "send 4096 to 1", or "send 4096 to 1, recv 8
// from 1" of a group; where a group is of two communicators, each one's by itself.
std::vector<std::string> nccl_calls(int rank);
int nccl_groups(int rank);
void forget_nccl_calls(int rank);
struct NcclRules {
  bool launches_held = false;         // no group gets into the streams
  bool aborts_wait_for_all = false;   // an abort returns when all ranks have called it
  std::pair<int, int> apart{-1, -1};  // ranks that can't be connected, the lower one first
};
void nccl(NcclRules);
void reset(unsigned seed);
// What else streams and calls may do to each other on a real device.
enum class WaitsFor { nobody, its_device, all_devices };
struct StreamRules {
  // So many queues a device, where 0 stands for one a stream: streams that share one go in the order of
  // starting.
  int queues = 0;
  // Calls that allocate, make a graph, or launch it first wait for all that was started.
  WaitsFor calls_wait_for = WaitsFor::nobody;
};
void streams(StreamRules);  // until the next reset
// From now until the next reset the device has a clock of its own, so that a kernel takes as long as it is
// said to, however long the stand-in is at it. Nothing begins before the host has started it; a stamp takes
// `stamp_s`; a host function and the host's waits are done when both clocks say so. All work should be
// shorter on the host than it is said to be.
void keep_time(double stamp_s);
// From now on the rank's communicator reports an asynchronous error.
void fail(int rank);
bool aborted(int rank);

}  // namespace antichain::test::fake_cuda
