import random,sys,traceback,collections
from pathlib import Path
from tempfile import mkdtemp
from tests.adoption.test_fuzz import *
seen=collections.Counter()
root=Path(mkdtemp())
for seed in range(int(sys.argv[1]),int(sys.argv[2])):
    rng=random.Random(seed)
    try:
        imported=adopt({"dump": text_of(rng, mutated(rng))}, root, "lab")
        told = findings(imported.report, Format.FULL, Theme()) + files(imported) + summary(imported, dry=True)
        if PLANTED in told: seen['LEAK']+=1; print('LEAK',seed)
    except GpuplanError: pass
    except Exception as e:
        tb=traceback.extract_tb(e.__traceback__)[-1]
        k=f"{tb.filename.split('gpuplan/',1)[-1]}:{tb.lineno} {type(e).__name__} {str(e)[:80]}"
        if not seen[k]: print(seed,k,flush=True)
        seen[k]+=1
print(seen)
