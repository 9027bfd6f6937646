// A Job is the set of ranks that work together, as one of them sees it: who they are, the calls by which they
// talk about anything but tensors, and how one learns that the job has ended. Tensors go by a Transport.
#pragma once

#include <string>
#include <vector>

#include "pipeline/host/progress.h"

namespace antichain {

class Job {
 public:
  virtual ~Job() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int local_rank() const = 0;  // among the ranks of this host
  virtual int local_size() const = 0;  // ranks on this host
  virtual std::string host() const = 0;

  // These calls are the control plane: they are small and blocking, and every rank makes them in one order. A
  // rank that has sent tensors flushes its transport first, because some transports move tensors only while
  // they are called.
  virtual void barrier() = 0;
  virtual std::string broadcast(std::string bytes, int root = 0) = 0;
  virtual std::vector<std::string> gather(const std::string& bytes) = 0;  // on rank 0 all, elsewhere empty

  // Letters make nobody wait but the rank that takes one. `post` returns at once. `take` returns the next
  // letter from that rank, in the order of posting, and waits for it. A rank may write to itself.
  virtual void post(int to, std::string letter) = 0;
  virtual std::string take(int from) = 0;

  // Throws Error where another rank has ended the job. Code that waits without a call of the job or of its
  // transport calls this.
  virtual void check_job() {}

  // What this rank is doing, for the watchdog: the runner reports each action, and waits report themselves.
  virtual Progress& activity() { return activity_; }

 private:
  Progress activity_;
};

}  // namespace antichain
