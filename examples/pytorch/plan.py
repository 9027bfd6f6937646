"""Makes a plan for 8 GPUs from a torchvision model. PyTorch measures, on a GPU where there is one."""

import antichain
import torch
import torchvision

model = torchvision.models.resnet50()
device = "cuda" if torch.cuda.is_available() else "cpu"
images = torch.zeros(8, 3, 224, 224)  # one micro-batch
profile = antichain.profile_torch(model, images, "profile.json", device=device, link_bytes_per_s=25e9)
plan = antichain.plan(profile, stages=8, microbatches=32, objective="makespan")
print(plan, antichain.simulate(profile, plan, microbatches=32), sep="\n")
plan.write("plan.json")
