// This transport passes everything on. A test overrides what it wants to see, or to have otherwise.
#pragma once

#include <utility>

#include "pipeline/transport/transport_over.h"

namespace antichain::test {

class PassingTransport : public TransportOver {
 public:
  using TransportOver::TransportOver;
  void send(MessageKey key, int peer, Tensor t) override { below_.send(key, peer, std::move(t)); }
  Ticket recv(MessageKey key, int peer, Tensor t) override { return below_.recv(key, peer, std::move(t)); }
  void wait(Ticket ticket) override { below_.wait(ticket); }
  bool arrived(Ticket ticket) override { return below_.arrived(ticket); }
  void progress() override { below_.progress(); }
  void serve() override { below_.serve(); }
  void flush() override { below_.flush(); }
  int lanes() const override { return below_.lanes(); }
  void begin_step(std::span<const Turn> turns) override { below_.begin_step(turns); }
  void give_up() override { below_.give_up(); }
};

}  // namespace antichain::test
