# spack repo add packaging/spack && spack dev-build antichain@main
from spack.package import *


class Antichain(CMakePackage):
    """Profile, plan, simulate and train a neural network as a pipeline over MPI."""

    version("main")  # the sources are a checkout: spack dev-build

    variant("mpi", default=True, description="Ranks may be processes; without it, only threads")
    variant("cuda", default=False, description="The CUDA module, for --device cuda")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("mpi", when="+mpi")
    depends_on("onednn@2.6:3 cpu_runtime=omp")
    depends_on("hdf5@1.10: ~mpi")
    depends_on("eigen@3.4:3")
    depends_on("nlohmann-json@3.10:")
    depends_on("cli11")
    depends_on("fmt@9:")
    depends_on("tomlplusplus")
    depends_on("xxhash")
    depends_on("jpeg")
    depends_on("libpng")
    depends_on("zlib-api")
    depends_on("cuda@12:", when="+cuda")
    depends_on("cudnn@9:", when="+cuda")

    generator("ninja")

    def cmake_args(self):
        return [
            self.define("ANTICHAIN_TESTS", False),
            self.define_from_variant("ANTICHAIN_MPI", "mpi"),
            self.define("ANTICHAIN_CUDA", "ON" if self.spec.satisfies("+cuda") else "OFF"),
        ]
