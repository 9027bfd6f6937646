// Tells augmentation.py how many training images the loader makes in a second of one core's time.
//
//   augment_times FOLDER      the folder has CIFAR-10's binary files
//
// Each line of the standard input is "crop flip trivial erase mixup cutmix batches", as in "reflect 1 0
// 0.25 0 0 200". The answer counts the processor time of the whole process, the loader's thread included.
#include <fmt/format.h>
#include <time.h>

#include <cstdio>
#include <iostream>
#include <string>

#include "data/cifar.h"
#include "data/loader.h"

namespace antichain {
namespace {

constexpr int64_t batch_samples = 128;
constexpr int batches_ahead = 2;

double process_cpu_s() {
  timespec t{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

double images_per_s(const std::shared_ptr<const DataSet>& set, const AugmentOptions& augment, int batches) {
  Loader loader(set, {.batch = batch_samples, .seed = 1, .augment = augment, .ahead = batches_ahead});
  const Tensor images = Tensor::host({{batch_samples, 3, 32, 32}});
  const Tensor classes = Tensor::host({{batch_samples}, DType::i32}),
               shares = Tensor::host({{batch_samples, 10}});
  BatchPosition position;
  const auto load = [&](int count) {
    for (int i = 0; i < count; ++i, position = loader.sampler().after(position)) {
      loader.fill_images(position, 0, images);
      loader.fill_labels(position, 0, mixes(augment) ? shares : classes);
    }
  };
  load(2 * batches_ahead);  // then the thread is as far ahead at the end as at the beginning
  const double start_s = process_cpu_s();
  load(batches);
  return double(batches * batch_samples) / (process_cpu_s() - start_s);
}

int answer(const std::string& folder) {
  const std::shared_ptr<const DataSet> set = read_cifar(cifar10(), folder).train;
  std::string crop;
  AugmentOptions o;
  int batches = 0;
  while (std::cin >> crop >> o.flip >> o.trivial >> o.erase >> o.mixup >> o.cutmix >> batches) {
    o.crop = parse_crop(crop);
    fmt::print("{:.0f}\n", images_per_s(set, o, batches));
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace antichain

int main(int count, char** words) {
  if (count != 2) return fmt::print(stderr, "augment_times FOLDER\n"), 2;
  return antichain::answer(words[1]);
}
