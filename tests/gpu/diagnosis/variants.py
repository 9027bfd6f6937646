"""Lists the ways in which a small training is run, and what each of them leaves out."""

# Batch norm with add; dropout and linear layers; bias behind convolutions and concatenation. In the order in
# which they tell something new.
NETWORKS = [("resnet20", "float32"), ("vgg16", "bf16"), ("squeezenet1_0", "float32"), ("resnet20", "bf16"), ("vgg16", "float32"),
            ("squeezenet1_0", "bf16")]
# How far a loss may be from the CPU's in float32, relative to it. On the CPU itself, bf16 is 0.6 % off after
# five steps.
NEAR = {"float32": 1e-3, "bf16": 2e-2}
SAFE = {"ANTICHAIN_CUDA_GRAPHS": "0", "ANTICHAIN_CUDA_LOOPS": "all", "CUDA_LAUNCH_BLOCKING": "1"}


class Variant:
    """One way to run, and what is to be looked at where it alone is right."""

    def __init__(self, name, environment=None, options=(), processes=0, same_bits=True, blames=""):
        self.name, self.environment, self.options = name, environment or {}, list(options)
        self.processes, self.same_bits, self.blames = processes, same_bits, blames


AS_IT_IS = Variant("as it is")
OF_ONE = [
    Variant("again", blames="something differs from run to run: a race, or an engine that is not deterministic"),
    Variant("without graphs", {"ANTICHAIN_CUDA_GRAPHS": "0"}, blames="recorded steps (pipeline/cuda/recordings.cpp)"),
    Variant("images by the host", options=["--augment", "host"], blames="images made on the device (data/cuda/make_images.cu)"),
    Variant("without cuDNN", {"ANTICHAIN_CUDA_LOOPS": "convolutions"}, same_bits=False,
            blames="cuDNN's convolutions (layers/cuda/cudnn_convolution.cpp; ANTICHAIN_CUDA_PLANS=1 names its engines)"),
    Variant("without cuBLASLt", {"ANTICHAIN_CUDA_LOOPS": "products"}, same_bits=False,
            blames="cuBLASLt's products (layers/cuda/cublas_gemm.cpp)"),
    Variant("one kernel at a time", {"ANTICHAIN_CUDA_GRAPHS": "0", "CUDA_LAUNCH_BLOCKING": "1"},
            blames="something that does not wait for what it needs: streams and events"),
    Variant("all of these", SAFE, ["--augment", "host"], same_bits=False, blames="more than one of these parts"),
]
HOST_MEMORY = ("copies through host memory (pipeline/transport/staged_transport.cpp, pipeline/cuda/copy_stream.cpp), "
               "or the pipeline's device side (pipeline/run/stream_device.cpp)")
OF_RANKS = [
    Variant("2 threads", options=["--local", "2", "--method", "uniform"], blames=HOST_MEMORY),
    Variant("2 processes, host memory", options=["--method", "uniform", "--transport", "mpi"], processes=2, blames=HOST_MEMORY),
    Variant("2 processes", options=["--method", "uniform"], processes=2, blames="messages by NCCL (pipeline/cuda/nccl_stream.cpp)"),
]
