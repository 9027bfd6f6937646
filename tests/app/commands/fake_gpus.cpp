// This is the program on stand-ins of GPUs. It has the whole command line, the CUDA backend and the code of
// pipeline/cuda, and its ranks are processes or threads. The environment says what the GPUs are like. At the
// end each process says on stderr which of them it used.
//
//   FAKE_GPUS            how many each process sees [2]
//   FAKE_GPU_MIB         memory of each
//   FAKE_GPUS_EXCLUSIVE  a folder: a GPU takes one process
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "app/run.h"
#include "framework/backend.h"
#include "pipeline/cuda/streams.h"
#include "pipeline/host/launch.h"
#include "tests/pipeline/fakes/fake_cuda.h"
#include "tests/pipeline/fakes/fake_cuda_backend.h"
#include "tests/pipeline/fakes/fake_devices.h"

extern "C" void antichain_register_streams();  // pipeline/cuda/module.cpp

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

int main(int argc, char** argv) {
  using namespace antichain;
  namespace fake_cuda = test::fake_cuda;
  fake_cuda::DeviceRules rules{
      .devices = 2, .exclusive = variable("FAKE_GPUS_EXCLUSIVE"), .threads_choose = true};
  if (const std::string devices = variable("FAKE_GPUS"); !devices.empty()) rules.devices = std::stoi(devices);
  if (const std::string mib = variable("FAKE_GPU_MIB"); !mib.empty())
    rules.memory_bytes = std::stoll(mib) << 20;
  fake_cuda::devices(rules);
  register_backend(test::make_fake_cuda_backend("cuda"));
  antichain_register_streams();
  if (!launched_in_parallel())  // the stand-in of NCCL connects no processes
    register_device_messages("cuda", {.by = cuda::nccl_version(), .make = cuda::make_nccl_stream});

  const int code = run(argc, argv);
  fmt::print(stderr, "rank {} used GPU {}\n", rank_hint(), fmt::join(fake_cuda::contexts(), " and "));
  for (const std::string& rule : fake_cuda::broken_rules()) fmt::print(stderr, "broken rule: {}\n", rule);
  return code;
}
