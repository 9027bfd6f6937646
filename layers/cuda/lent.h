// Lends an object of type T to each thread until the thread ends; then the next thread that asks gets it,
// with everything it has gathered. So two running threads never share one, and there are as many objects as
// threads ran at once. They are never destroyed: CUDA may end before static objects do.
#pragma once

#include <mutex>
#include <vector>

namespace antichain::cuda {

template <class T>
T& lent_to_this_thread() {
  struct Pool {
    std::mutex mutex;
    std::vector<T*> free;

    T* take() {
      const std::lock_guard lock(mutex);
      if (free.empty()) return new T;
      T* const one = free.back();
      free.pop_back();
      return one;
    }
    void give_back(T* one) {
      const std::lock_guard lock(mutex);
      free.push_back(one);
    }
  };
  static auto* const pool = new Pool;
  struct Loan {
    T* const one = pool->take();
    ~Loan() { pool->give_back(one); }
  };
  thread_local Loan loan;
  return *loan.one;
}

}  // namespace antichain::cuda
