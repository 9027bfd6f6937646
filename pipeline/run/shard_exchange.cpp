#include "pipeline/run/shard_exchange.h"

#include <algorithm>

#include "framework/error.h"
#include "framework/sum_of_squares.h"

namespace antichain {

template <class F>
void ShardExchange::for_each_shared_out(const F& f) const {
  int number = 0;
  model_.for_each_trained(
      [&](const ParamUse& use, const std::string& name, const std::vector<Share>& shares) {
        f(MessageKey{channel_, number++}, use, name, shares);
      });
}

void ShardExchange::gather_weights() {
  std::vector<Transport::Ticket> coming;
  for (const bool sends : {false, true})
    for_each_shared_out([&](const MessageKey& key, const ParamUse& use, const std::string&,
                            const std::vector<Share>& shares) {
      const Tensor& weight = model_[use.node].params[size_t(use.param)];
      for (const Share& share : shares) {
        const Tensor part = RankModel::part(weight, share.of);
        if (!sends && !is_own(share)) coming.push_back(transport_.recv(key, rank_of(share.owner), part));
        if (!sends || !is_own(share)) continue;
        for (const int rank : model_.shards().ranks)
          if (rank != transport_.rank()) transport_.send(key, rank, part);
      }
    });
  for (const Transport::Ticket ticket : coming) transport_.wait(ticket);
  transport_.flush();
  model_.prepare();
}

SquaresByName ShardExchange::squares() {
  static_assert(part_alignment_bytes % (SumOfSquares::lanes * sizeof(float)) == 0);
  SquaresByName squares;
  for_each_shared_out([&](const MessageKey& key, const ParamUse& use, const std::string& name,
                          const std::vector<Share>& shares) {
    const Tensor& gradient = model_[use.node].gradients[size_t(use.param)];
    if (shares.empty()) squares[name] = sum_of_squares(gradient.data<float>(), gradient.elements());
    const auto own = std::ranges::find_if(shares, [&](const Share& share) { return is_own(share); });
    if (own == shares.end()) return;
    const Tensor sums = Tensor::host({{SumOfSquares::lanes}, DType::f64});
    SumOfSquares sum;
    if (own != shares.begin()) {
      transport_.wait(transport_.recv(key, rank_of((own - 1)->owner), sums));
      std::copy_n(sums.data<double>(), SumOfSquares::lanes, sum.sums);
    }
    const Tensor part = RankModel::part(gradient, own->of);
    sum.add(part.data<float>(), part.elements());
    if (own + 1 == shares.end()) {
      squares[name] = sum.total();
      return;
    }
    std::copy_n(sum.sums, SumOfSquares::lanes, sums.data<double>());
    transport_.send(key, rank_of((own + 1)->owner), sums);
  });
  transport_.flush();
  return squares;
}

void ShardExchange::gather_slot(const ParamUse& wanted, const Tensor& own, const Tensor& whole) {
  for_each_shared_out(
      [&](const MessageKey& key, const ParamUse& use, const std::string&, const std::vector<Share>& shares) {
        if (use != wanted) return;
        for (const Share& share : shares) {
          if (share.owner == 0) continue;
          if (model_.shards().own == 0)
            transport_.wait(transport_.recv(key, rank_of(share.owner), RankModel::part(whole, share.of)));
          else if (is_own(share))
            transport_.send(key, rank_of(0), own);
        }
      });
  transport_.flush();
}

bool swap_averages(RankModel& model, Transport& transport) {
  if (!model.swap_averages()) return false;
  if (model.shards().of_state()) ShardExchange(model, transport).gather_weights();
  return true;
}

void ShardedNorm::scale(float factor) {
  model_.for_each_trained([&](const ParamUse& use, const std::string&, const std::vector<Share>&) {
    const ByteRange own = model_.own_part(use);
    if (own.bytes == 0) return;
    const Tensor part = RankModel::part(model_[use.node].gradients[size_t(use.param)], own);
    float* const x = part.data<float>();
    for (int64_t i = 0; i < part.elements(); ++i) x[i] *= factor;
  });
}

void ShardedNorm::clip(double) { ANTICHAIN_CHECK(false, "a replica never trains alone"); }

}  // namespace antichain
