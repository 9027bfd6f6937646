#include "layers/cpu/backend.h"

#include <fmt/format.h>
#include <omp.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>

#include "framework/error.h"
#include "framework/say.h"
#include "layers/cpu/activation.h"
#include "layers/cpu/adapted.h"
#include "layers/cpu/cpu_isa.h"

namespace antichain {
namespace {

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(std::min(line.find(':') + 2, line.size()));
  return "unknown CPU";
}

std::string version() {
  const dnnl_version_t* v = dnnl_version();
  return fmt::format("oneDNN {}.{}.{}", v->major, v->minor, v->patch);
}

// Returns whether float32 may be multiplied in fewer bits, and which registers are preferred. The variables
// ONEDNN_DEFAULT_FPMATH_MODE and ONEDNN_CPU_ISA_HINTS set them.
std::string modes() {
  dnnl_fpmath_mode_t arithmetic = dnnl_fpmath_mode_strict;
  dnnl_get_default_fpmath_mode(&arithmetic);
  return fmt::format("{}, {}", int(arithmetic), int(dnnl_get_cpu_isa_hints()));
}

// Returns "AVX-512" for "avx512_core_bf16": instruction sets whose float32 kernels are the same have one
// name.
std::string usual_name(const std::string& isa) {
  if (isa == "avx512_core_amx") return "AVX-512 with AMX";
  if (isa.starts_with("avx512")) return "AVX-512";
  if (isa.starts_with("avx2")) return "AVX2";
  return isa == "avx" ? "AVX" : isa == "sse41" ? "SSE4.1" : "other instructions";
}

// libgomp ends the process, by exit(1), where the system does not start a thread.
std::atomic<int> starting{0};
void say_what_libgomp_lacked() {
  if (starting == 0) return;
  say_last(
      "the system starts no more threads for this process: raise ulimit -u, or use fewer ranks and "
      "--threads");
  std::_Exit(int(ExitCode::out_of_memory));
}

// A kernel that waits for a thread which never comes would wait forever.
void check_team(int wanted) {
  if (wanted == 1) return;
  [[maybe_unused]] static const int registered = std::atexit(say_what_libgomp_lacked);
  int team = 0;
  ++starting;
#pragma omp parallel
#pragma omp single
  team = omp_get_num_threads();
  --starting;
  if (team == wanted) return;
  throw Error(
      fmt::format("OpenMP gives a rank {} thread(s), but --threads asks for {} (OMP_THREAD_LIMIT is {}, "
                  "OMP_MAX_ACTIVE_LEVELS {})",
                  team, wanted, omp_get_thread_limit(), omp_get_max_active_levels()),
      fmt::format("unset these variables, or give --threads {}", team), ExitCode::usage);
}

class CpuBackend : public Backend {
 public:
  CpuBackend(cpu::Operators operators, cpu::Updates updates) {
    kernels_ = std::move(operators);
    updates_ = std::move(updates);
  }

  std::string name() const override { return "cpu"; }
  std::string description() const override {
    return fmt::format("{}, {}, {}", cpu_model(), usual_name(cpu_isa()), version());
  }
  std::vector<std::pair<std::string, std::string>> chooses_by() const override {
    return {{"the instruction set", cpu_isa()},
            {"the library", fmt::format("{} ({})", version(), dnnl_version()->hash)},
            {"oneDNN's mode of arithmetic and its hints", modes()}};
  }
  void require(Precision precision) const override {
    if (precision == Precision::float32 || cpu::has_bf16()) return;
    throw Error(fmt::format("{} has no AVX512_BF16 instructions, or oneDNN was told not to use them, so it "
                            "does not compute in {}",
                            cpu_model(), name_of(precision)),
                "use --precision float32", ExitCode::usage);
  }
  std::shared_ptr<std::byte> allocate(int64_t bytes) const override { return allocate_host(bytes); }

  void copy(const Context&, const Tensor& from, const Tensor& to) const override {
    ANTICHAIN_CHECK(from.spec() == to.spec(), "a copy keeps shape, type and layout");
    std::memcpy(to.raw(), from.raw(), size_t(from.bytes()));
  }

  void enter(const Context& context) const override {
    omp_set_dynamic(
        0);  // fewer threads where the machine is busy would change bits, and kernels rely on theirs
    omp_set_num_threads(context.threads());
    check_team(context.threads());
  }

  void add(Context&, const Tensor& x, const Tensor& y) const override {
    ANTICHAIN_CHECK(x.spec() == y.spec(), "add takes two tensors of one form");
    with_type(x.dtype(), [&]<class T>() { cpu::accumulate(x.data<T>(), y.data<T>(), x.elements()); });
  }
};

}  // namespace

void register_cpu_backend() {
  static std::once_flag once;  // ranks that are threads may all call it
  std::call_once(once,
                 [] { register_backend(std::make_unique<CpuBackend>(cpu::operators(), cpu::updates())); });
}

}  // namespace antichain
