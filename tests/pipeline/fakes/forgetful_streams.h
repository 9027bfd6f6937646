// These streams of a device for copies and messages leave out one kind of wait. What goes wrong then
// shows that the wait is needed, and that the stand-ins of the device can tell.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/device/device_streams.h"
#include "tests/pipeline/transport/copies_between.h"

namespace antichain::test {

// What a stream forgets to wait for.
enum class Forgets { nothing, computed, free_buffer, arrival, delivery };

class ForgetfulCopies : public CopiesBetween {
 public:
  ForgetfulCopies(std::unique_ptr<CopyStream> copies, Forgets forgets)
      : CopiesBetween(std::move(copies)), forgets_(forgets), begin_(copies_->computed()) {}
  void compute_after(const Moment& moment) override {
    if (forgets_ != Forgets::arrival) copies_->compute_after(moment);
  }
  bool reached(const Moment& moment) override {
    return forgets_ == Forgets::delivery || copies_->reached(moment);
  }
  Moment to_host(const Tensor& from, const Tensor& host, const Moment& after) override {
    return copies_->to_host(from, host, forgets_ == Forgets::computed ? begin_ : after);
  }
  Moment to_device(const Tensor& host, const Tensor& to, const Moment& after) override {
    return copies_->to_device(host, to, forgets_ == Forgets::free_buffer ? begin_ : after);
  }

 private:
  const Forgets forgets_;
  const Moment begin_;
};

class ForgetfulMessages : public MessageStream {
 public:
  ForgetfulMessages(std::unique_ptr<MessageStream> messages, Forgets forgets)
      : messages_(std::move(messages)), forgets_(forgets), begin_(messages_->computed()) {}
  Moment computed() override { return messages_->computed(); }
  void compute_after(const Moment& moment) override {
    if (forgets_ != Forgets::arrival) messages_->compute_after(moment);
  }
  bool reached(const Moment& moment) override {
    return forgets_ == Forgets::delivery || messages_->reached(moment);
  }
  int lanes() const override { return messages_->lanes(); }
  std::vector<Moment> exchange(std::span<const MessageHalf> halves) override {
    std::vector<MessageHalf> changed(halves.begin(), halves.end());
    for (MessageHalf& half : changed)
      if (forgets_ == Forgets::computed) half.after = begin_;
    return messages_->exchange(changed);
  }
  std::string failure() override { return messages_->failure(); }
  void give_up() override { messages_->give_up(); }

 private:
  const std::unique_ptr<MessageStream> messages_;
  const Forgets forgets_;
  const Moment begin_;
};

}  // namespace antichain::test
