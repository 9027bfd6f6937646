#include "pipeline/train/checkpointer.h"

#include <fmt/format.h>
#include <unistd.h>

#include "framework/backend.h"
#include "framework/error.h"
#include "framework/version.h"
#include "pipeline/host/host_memory.h"
#include "pipeline/host/seconds.h"
#include "pipeline/run/shard_exchange.h"
#include "pipeline/transport/agree.h"

namespace antichain {
namespace {

constexpr double guessed_bytes_per_s = 50e6;  // until a checkpoint was measured: a slow disk

}  // namespace

int64_t checkpoint_memory_bytes(const StateBytes& state) {
  return state.all + state.largest + (int64_t(16) << 20);
}

Checkpointer::Checkpointer(const CheckpointOptions& options, const TrainPosition& start, RankModel& model,
                           const Seat& seat, Transport& transport, Listener listener)
    : options_(options),
      seat_(seat),
      folder_(options.folder),
      model_(model),
      transport_(transport),
      job_(transport.job()),
      listener_(std::move(listener)),
      state_bytes_(state_bytes(model)),
      setting_(options.setting),
      newest_(options.resumed),
      newest_position_(start),
      begin_(Clock::now()),
      due_from_(begin_) {}

bool Checkpointer::due_at(int64_t step) const {
  return on() && options_.every_steps > 0 && step % options_.every_steps == 0;
}

bool Checkpointer::due_now() const {
  return on() && options_.every_s > 0 && seconds_since(due_from_) >= options_.every_s;
}

double Checkpointer::cost_s() const {
  if (!on()) return 0;
  return last_s_ > 0 ? last_s_ : double(state_bytes_.all) * job_.size() / guessed_bytes_per_s;
}

bool Checkpointer::has(int64_t step) const {
  if (begun_ && kind_ == CheckpointKind::of_step) return position_.step == step;
  return newest_ == folder_.of_step(step);
}

bool Checkpointer::memory_allows_copy() const {
  return copied_ || checkpoint_memory_bytes(state_bytes_) * job_.local_size() <=
                        std::min(available_memory_bytes(), address_space_bytes());
}

void Checkpointer::divided_anew(const Facts& setting) {
  ANTICHAIN_CHECK(!begun_, "a checkpoint has the state of one plan");
  state_bytes_ = state_bytes(model_);
  copy_ = StateCopy();
  copied_ = false;
  if (!setting.empty()) setting_ = setting;
}

void Checkpointer::begin(const TrainPosition& position, CheckpointKind kind) {
  const auto start = Clock::now();
  finish();
  job_.activity().doing(fmt::format("copying the state for the checkpoint of step {}", position.step));
  begin_ = Clock::now();
  if (kind == CheckpointKind::of_step) due_from_ = begin_;
  begun_ = true, told_ = false;
  position_ = position;
  kind_ = kind;
  written_.reset(), verdict_.reset();
  parts_.clear();
  ShardExchange exchange(model_, transport_);
  const GatherSlot gather = [&](const auto&... slot) { exchange.gather_slot(slot...); };
  if (seat_.replica > 0) {
    give_slots(model_, gather);
    written_ = Background::Outcome{true, ""};
    return;
  }
  const bool alias = !memory_allows_copy();
  copied_ = !alias;
  copy_.take(model_, alias, gather);
  writer_.start(
      [this, name = checkpoint_file_name(seat_.stage)](const auto& beat) { return write(name, beat); });
  if (alias) {
    const Progress::Disk disk(job_.activity(), "writing a checkpoint, for whose copy there is no memory");
    written_ = writer_.take(job_.activity());
  }
  held_up_s_ = seconds_since(start);
}

// On the writer's thread.
std::string Checkpointer::write(const std::string& name, const std::function<void()>& beat) const {
  model_.context().backend().enter(model_.context());  // the thread has no device of its own
  folder_.begin(position_.step, kind_);
  SyncedFile file(folder_.partial_of(position_.step, kind_) + "/" + name, beat);
  copy_.write_hdf5(model_.context(), [&](std::string_view bytes) { file.write(bytes); });
  file.finish();
  return to_json(CheckpointFile{name, file.bytes(), file.hash(), copy_.tensors()});
}

std::string Checkpointer::status() {
  if (!begun_ || told_) return "";
  if (!written_ && writer_.ready()) written_ = writer_.take(job_.activity());
  if (!written_) return "";
  told_ = true;
  return (written_->good ? "+" : "-") + written_->text;
}

void Checkpointer::take_status(int rank, const std::string& status) {
  if (!status.empty()) parts_[rank] = {status.front() == '+', status.substr(1)};
}

void Checkpointer::tend() {
  if (!begun_ || verdict_ || job_.rank() != 0) return;
  if (publisher_.busy()) {
    if (!publisher_.ready()) return;
    const Background::Outcome outcome = publisher_.take(job_.activity());
    return outcome.good ? conclude("", outcome.text) : conclude(outcome.text, "");
  }
  if (int(parts_.size()) < job_.size()) return;
  Manifest manifest{.program = version(),
                    .model = options_.model,
                    .recipe = options_.recipe,
                    .setting = setting_,
                    .position = position_};
  bytes_ = 0;
  for (const auto& [rank, part] : parts_) {
    if (!part.good) return conclude(part.text, "");
    if (part.text.empty()) continue;  // another replica wrote it
    manifest.files.push_back(checkpoint_file_from_json(part.text, fmt::format("rank {}", rank)));
    bytes_ += manifest.files.back().bytes;
  }
  publisher_.start([this, manifest](const auto&) -> std::string {
    folder_.publish(manifest, kind_);
    if (kind_ == CheckpointKind::best) return "";
    try {
      folder_.prune(manifest.position.step, options_.keep);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  });
}

void Checkpointer::conclude(const std::string& failure, std::string warning) {
  verdict_ = failure;
  last_s_ = seconds_since(begin_);
  const double limit_s = job_.activity().limit_s();
  if (limit_s > 0 && last_s_ > limit_s)
    warning += fmt::format(
        "{}the disk of {} is slow: this checkpoint took {:.0f} s, which is longer than --watchdog",
        warning.empty() ? "" : "; ", folder_.path(), last_s_);
  if (!failure.empty()) folder_.discard(position_.step, kind_);
  listener_({.step = position_.step,
             .bytes = bytes_,
             .path = folder_.path_of(position_.step, kind_),
             .seconds = last_s_,
             .held_up_s = held_up_s_,
             .failure = failure,
             .warning = warning});
}

std::string Checkpointer::finish() {
  if (!begun_) return "";
  const Progress::Disk disk(job_.activity(), fmt::format("writing the checkpoint of step {} to {}",
                                                         position_.step, folder_.path()));
  if (!told_ && !written_) written_ = writer_.take(job_.activity());
  const auto all = job_.gather(status());
  for (size_t rank = 0; rank < all.size(); ++rank) take_status(int(rank), all[rank]);
  for (tend(); job_.rank() == 0 && !verdict_; tend()) ::usleep(500);
  const std::string failure = job_.broadcast(verdict_.value_or(""));
  begun_ = false;
  if (!failure.empty()) folder_.discard(position_.step, kind_);  // where this rank's folder is another one
  if (failure.empty() && kind_ == CheckpointKind::of_step) {
    newest_ = folder_.of_step(position_.step);
    newest_position_ = position_;
  }
  return failure;
}

std::optional<TrainPosition> Checkpointer::rewind() {
  finish();
  if (newest_.empty()) return {};
  const Progress::Disk disk(job_.activity(), "going back to " + newest_);
  const std::string text = on_rank_zero(job_, [&] { return read_manifest(newest_); });
  restore(model_, newest_, manifest_from_json(text, newest_ + "/manifest.json"));
  return newest_position_;
}

}  // namespace antichain
