// These copies between devices pass everything on. A test overrides what it wants to see, or to have
// forgotten.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "pipeline/device/device_streams.h"

namespace antichain::test {

class PeersBetween : public PeerStream {
 public:
  explicit PeersBetween(std::unique_ptr<PeerStream> peers) : peers_(std::move(peers)) {}
  Moment computed() override { return peers_->computed(); }
  void compute_after(const Moment& moment) override { peers_->compute_after(moment); }
  bool reached(const Moment& moment) override { return peers_->reached(moment); }
  std::string introduction() override { return peers_->introduction(); }
  std::string reach(int peer, const std::string& introduction) override {
    return peers_->reach(peer, introduction);
  }
  PeerNote show(int peer, const Tensor& into) override { return peers_->show(peer, into); }
  Moment write(int peer, const Tensor& from, const PeerNote& shown, const Moment& after,
               PeerNote& written) override {
    return peers_->write(peer, from, shown, after, written);
  }
  Moment written(int peer, const PeerNote& note) override { return peers_->written(peer, note); }
  void close() override { peers_->close(); }
  void all_closed() override { peers_->all_closed(); }

 protected:
  const std::unique_ptr<PeerStream> peers_;
};

}  // namespace antichain::test
