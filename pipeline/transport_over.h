// A transport over another one: the job's ranks, its control plane and its watchdog stay those of the one below; only the way
// of tensors differs.
#pragma once

#include <utility>

#include "pipeline/transport.h"

namespace antichain {

class TransportOver : public Transport {
 public:
  explicit TransportOver(Transport& job) : job_(job) {}  // must outlive this one

  int rank() const override { return job_.rank(); }
  int size() const override { return job_.size(); }
  int local_rank() const override { return job_.local_rank(); }
  int local_size() const override { return job_.local_size(); }
  std::string host() const override { return job_.host(); }

  void barrier() override { job_.barrier(); }
  std::string broadcast(std::string bytes, int root) override {
    return job_.broadcast(std::move(bytes), root);
  }
  std::vector<std::string> gather(const std::string& bytes) override { return job_.gather(bytes); }
  void abort(int code) override { job_.abort(code); }

  Progress& activity() override { return job_.activity(); }
  void name_messages(Namer namer) override {
    Transport::name_messages(namer);
    job_.name_messages(std::move(namer));
  }

 protected:
  Transport& job_;
};

}  // namespace antichain
