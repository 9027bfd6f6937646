#include "tests/layers/emulated/device.h"

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

namespace antichain::emulated {
namespace {

constexpr size_t stack_bytes = 64 << 10;

enum class Is { running, waiting, over };

// Runs one thread after another. A fiber is made once, entered by a context and from then on by jumps, which
// need no system call.
struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack{new char[stack_bytes]};
  bool is_entered = false;
  jmp_buf place;
  dim3 index = 0;
  Is is = Is::over;
};

class Block {
 public:
  void run(dim3 size, const std::function<void()>& kernel) {
    kernel_ = &kernel;
    const size_t count = size_t(size.x) * size.y * size.z;
    while (fibers_.size() < count) fibers_.push_back(std::make_unique<Fiber>());
    order_.resize(count);
    std::iota(order_.begin(), order_.end(), size_t(0));
    for (size_t t = 0; t < count; ++t) {
      fibers_[t]->index = {unsigned(t) % size.x, unsigned(t) / size.x % size.y,
                           unsigned(t) / size.x / size.y};
      fibers_[t]->is = Is::running;
    }
    while (fibers_[0]->is != Is::over) to_next_barrier();
  }

  void wait() { leave(Is::waiting); }

  int64_t meetings = 0;

 private:
  static void work();

  void enter(Fiber& fiber) {
    current_ = &fiber;
    thread_index = fiber.index;
    if (_setjmp(scheduler_) != 0) return;
    if (fiber.is_entered) _longjmp(fiber.place, 1);
    fiber.is_entered = true;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = stack_bytes;
    makecontext(&fiber.context, work, 0);
    setcontext(&fiber.context);
  }

  void leave(Is is) {
    current_->is = is;
    if (_setjmp(current_->place) == 0) _longjmp(scheduler_, 1);
  }

  void to_next_barrier() {
    std::shuffle(order_.begin(), order_.end(), random_);
    for (const size_t t : order_) enter(*fibers_[t]);
    const Is first = fibers_[0]->is;
    meetings += first == Is::waiting;
    for (const size_t t : order_)
      if (fibers_[t]->is != first) {
        std::fputs("a barrier that not all threads of a block come to\n", stderr);
        std::abort();
      }
  }

  const std::function<void()>* kernel_ = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<size_t> order_;
  Fiber* current_ = nullptr;
  jmp_buf scheduler_;
  std::mt19937 random_{1};
};

Block& block() {
  static Block the;
  return the;
}

void Block::work() {
  for (Block& own = block();; own.leave(Is::over)) (*own.kernel_)();
}

}  // namespace

static int64_t launched = 0, blocks_run = 0;

void barrier() { block().wait(); }

void run_kernel(dim3 grid, dim3 size, const std::function<void()>& kernel) {
  ++launched;
  blocks_run += int64_t(grid.x) * grid.y * grid.z;
  block_size = size;
  grid_size = grid;
  static std::mt19937 random(1);
  std::vector<dim3> blocks;
  for (unsigned z = 0; z < grid.z; ++z)
    for (unsigned y = 0; y < grid.y; ++y)
      for (unsigned x = 0; x < grid.x; ++x) blocks.emplace_back(x, y, z);
  std::shuffle(blocks.begin(), blocks.end(), random);
  for (const dim3& index : blocks) {
    block_index = index;
    block().run(size, kernel);
  }
}

int64_t meetings() { return block().meetings; }
int64_t launches() { return launched; }
int64_t blocks() { return blocks_run; }

}  // namespace antichain::emulated
