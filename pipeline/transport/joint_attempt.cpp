#include "pipeline/transport/joint_attempt.h"

#include <algorithm>

namespace antichain {
namespace {

constexpr MessageKey key{0, 0};

Tensor message(bool good) {
  const Tensor byte = Tensor::host({{1}, DType::u8});
  *byte.raw() = std::byte(good);
  return byte;
}

}  // namespace

JointAttempt::JointAttempt(Transport& job) : job_(job) {
  for (int peer = 0; peer < job.size(); ++peer) {
    if (peer == job.rank()) continue;
    const Tensor into = message(false);
    others_.push_back({into, job.recv(key, peer, into)});
  }
}

void JointAttempt::look() {
  job_.job().check_job();
  for (Other& other : others_) {
    if (!other.came && job_.arrived(other.ticket)) take(other);
    if (other.came && *other.good.raw() == std::byte(false)) throw OthersFailed();
  }
}

bool JointAttempt::all_succeeded(bool good) {
  for (int peer = 0; peer < job_.size(); ++peer)
    if (peer != job_.rank()) job_.send(key, peer, message(good));
  for (Other& other : others_)
    if (!other.came) take(other);
  job_.flush();
  return good && std::ranges::all_of(others_,
                                     [](const Other& other) { return *other.good.raw() == std::byte(true); });
}

void JointAttempt::take(Other& other) {
  job_.wait(other.ticket);
  other.came = true;
}

}  // namespace antichain
