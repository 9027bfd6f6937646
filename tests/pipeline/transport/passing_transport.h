// A transport that passes everything on: a test overrides what it wants to see, or to have otherwise.
#pragma once

#include <utility>

#include "pipeline/transport/transport_over.h"

namespace antichain::test {

class PassingTransport : public TransportOver {
 public:
  using TransportOver::TransportOver;
  void send(MessageKey key, int peer, Tensor t) override { job_.send(key, peer, std::move(t)); }
  Ticket recv(MessageKey key, int peer, Tensor t) override { return job_.recv(key, peer, std::move(t)); }
  void wait(Ticket ticket) override { job_.wait(ticket); }
  bool arrived(Ticket ticket) override { return job_.arrived(ticket); }
  void progress() override { job_.progress(); }
  void serve() override { job_.serve(); }
  void flush() override { job_.flush(); }
  bool ordered() const override { return job_.ordered(); }
  std::optional<int> lane_between(int from, int to, int lane) const override {
    return job_.lane_between(from, to, lane);
  }
  void begin_step(std::span<const Turn> turns) override { job_.begin_step(turns); }
  void give_up() override { job_.give_up(); }
};

}  // namespace antichain::test
