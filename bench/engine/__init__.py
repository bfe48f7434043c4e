"""What the integrity defences of `kvfence-engine` cost inside SGLang, on a CPU and without a model.

    python -m bench.engine            # measures (some minutes), prints ratios, writes bench/results/
    python -m bench.engine --quick    # few repetitions, for a look; writes nothing unless --output names a folder
    python -m bench.engine --draw     # prints and draws again what is in bench/results/

`measuring` runs in the stage's engine environment, where torch and SGLang are, and prints JSON; everything else runs in
the environment of the checkout. `on_gpu` stands alone, for a machine that has torch and a GPU and no SGLang.
"""
