"""Finds which of cuDNN's engines is at fault, where a network is right without cuDNN, by leaving out one at a
time (ANTICHAIN_CUDA_SKIP)."""
import re

from diagnosis.variants import AS_IT_IS, Variant


def engines(trainings, network, right):
    """Prints a row for each engine, and returns sentences about those without which the network is right."""
    said = trainings.run(network, AS_IT_IS, "cuda", {"ANTICHAIN_CUDA_PLANS": "1"})[1]
    numbers = sorted(set(re.findall(r"plan .* is engine (\d+)", said)), key=int)
    blamed = []
    for number in numbers:
        variant = Variant(f"without engine {number}", {"ANTICHAIN_CUDA_SKIP": number}, same_bits=False)
        if trainings.judge(network, variant, right)[0]:
            blamed.append(number)
    return [f"{' '.join(network)}: right without cuDNN's engine {n}: ANTICHAIN_CUDA_SKIP={n} leaves it out" for n in blamed]
