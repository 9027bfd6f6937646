// A SoloTransport is a job of one rank, so that no code needs to ask whether there are peers.
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "framework/error.h"
#include "pipeline/transport/job_transport.h"

namespace antichain {

class SoloTransport : public JobTransport {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  int local_rank() const override { return 0; }
  int local_size() const override { return 1; }
  std::string host() const override { return "localhost"; }

  void send(MessageKey, int, Tensor) override { no_peer(); }
  Ticket recv(MessageKey, int, Tensor) override { no_peer(); }
  void wait(Ticket) override { no_peer(); }
  bool arrived(Ticket) override { no_peer(); }
  void progress() override { activity().beat(); }
  void flush() override {}
  void barrier() override {}
  std::string broadcast(std::string bytes, int) override { return bytes; }
  std::vector<std::string> gather(const std::string& bytes) override { return {bytes}; }
  void post(int, std::string letter) override { letters_.push_back(std::move(letter)); }
  std::string take(int) override {
    ANTICHAIN_CHECK(!letters_.empty(), "a rank alone takes only letters of its own");
    std::string letter = std::move(letters_.front());
    letters_.pop_front();
    return letter;
  }

 private:
  [[noreturn]] static void no_peer() { check_failed("peer", "a rank alone has nobody to talk to"); }
  std::deque<std::string> letters_;
};

}  // namespace antichain
