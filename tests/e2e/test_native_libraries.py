# SPDX-License-Identifier: Apache-2.0
"""--native with what people import: 99 % of the stacks of large libraries are whole, once their tables are there."""

import collections
import contextlib
import json
import subprocess

import pytest

import harness
import peers

pytestmark = pytest.mark.usefixtures("profiler")

RATE = 199
SECONDS = 30
WHOLE = 0.99  # of the samples of a run's second half
INCOMPLETE = "[native frames incomplete]"
PACKAGES = (
    "numpy==2.4.6",
    "scipy==1.17.1",
    "lxml==6.1.3",
    "cryptography==50.0.2",
    "polars==2.1.0",
    "opencv-python-headless==5.0.0.93",
    "scikit-learn==1.9.1",
    "pandas==3.1.1",
    "pyarrow==26.0.1",
    "psycopg[binary]==3.3.9",
)
# What each does over and over, after what it imports.
LIBRARIES = {
    "numpy": (
        "import numpy as np\na = np.random.rand(200, 200)",
        "np.linalg.solve(a, a.T), np.sort(a, axis=1), np.fft.fft2(a), np.unique(a.round(1)), np.exp(a), a @ a",
    ),
    "scipy": (
        "import numpy as np\nfrom scipy import integrate, optimize, signal, sparse, spatial\nfrom scipy.sparse import linalg\n"
        "x = np.random.rand(2000, 3)\nm = sparse.random(300, 300, 0.02, format='csc') + sparse.eye(300, format='csc') * 3",
        "optimize.minimize(optimize.rosen, [1.3, .7, .8], method='BFGS'), integrate.quad(lambda x: np.cos(x) * x, 0, 30), "
        "linalg.spsolve(m, np.ones(300)), spatial.cKDTree(x).query(x[:300], 5), spatial.ConvexHull(x), signal.lfilter([1, 2], [1, .5], x[:, 0])",
    ),
    "sklearn": (
        "from sklearn import cluster, datasets, decomposition, ensemble, linear_model, neighbors, svm\n"
        "x, y = datasets.make_classification(400, 12, random_state=1)",
        "ensemble.RandomForestClassifier(5).fit(x, y).predict(x), ensemble.HistGradientBoostingClassifier(max_iter=5).fit(x, y), "
        "svm.SVC().fit(x, y).predict(x), cluster.KMeans(3, n_init=1).fit(x), neighbors.KNeighborsClassifier().fit(x, y).predict(x), "
        "linear_model.LogisticRegression().fit(x, y), decomposition.PCA(3).fit(x), linear_model.Lasso().fit(x, y)",
    ),
    "pandas": (
        "import io\nimport numpy as np\nimport pandas as pd\n"
        "t = pd.DataFrame({'k': np.random.randint(0, 50, 20000), 'v': np.random.rand(20000), 's': [str(i % 977) for i in range(20000)]})\n"
        "text = t.head(2000).to_csv()\nindex = pd.date_range('2020-01-01', periods=20000, freq='min')",
        "t.groupby('k').v.agg(['mean', 'std']), t.merge(t.drop_duplicates('k'), on='k'), t.sort_values(['s', 'v']), t.v.rolling(50).mean(), "
        "pd.read_csv(io.StringIO(text)), t.s.str.contains('9'), t.groupby('s').v.apply(lambda one: one.sum()), "
        "pd.Series(t.v.values, index=index).resample('h').sum(), t.pivot_table('v', 'k', aggfunc='sum')",
    ),
    "pyarrow": (
        "import io, random\nimport pyarrow as pa\nimport pyarrow.compute as pc\nimport pyarrow.csv\nimport pyarrow.parquet as pq\n"
        "pa.set_cpu_count(1)\npa.set_io_thread_count(1)\n"
        "t = pa.table({'k': [random.randrange(100) for _ in range(20000)], 'v': [random.random() for _ in range(20000)], 's': [str(i % 999) for i in range(20000)]})\n"
        "out = pa.BufferOutputStream()\npa.csv.write_csv(t, out)\ntext = out.getvalue()",
        "file = io.BytesIO(); pq.write_table(t, file, compression='zstd'); file.seek(0); pq.read_table(file); pa.csv.read_csv(pa.BufferReader(text)); "
        "t.group_by('k').aggregate([('v', 'mean')]); t.sort_by([('s', 'ascending'), ('v', 'descending')]); t.join(t.slice(0, 100), 'k'); "
        "pc.match_substring_regex(t['s'], '9+1?'); t.to_pylist(); pa.array([{'a': i, 'b': [i]} for i in range(2000)])",
    ),
    # Its wheel has a libcrypto of its own, without call frame information: each connection begins with TLS.
    "psycopg": (
        "import datetime, decimal, os\nimport psycopg\nfrom psycopg.adapt import PyFormat, Transformer\n"
        "values = [1, 'text', 2.5, decimal.Decimal('3.25'), datetime.datetime(2024, 1, 1), b'x' * 100, [1, 2, 3], None, True]\n"
        "where = 'host=127.0.0.1 user=a dbname=b sslmode=require gssencmode=disable port=' + os.environ['PORT']",
        "c = psycopg.connect(where, autocommit=True); [c.execute('select').fetchall() for _ in range(5)]; t = Transformer(c); "
        "[t.dump_sequence(values, [PyFormat.AUTO] * len(values)) for _ in range(3000)]; c.close()",
    ),
    "lxml": (
        "from lxml import etree\ntext = '<r>' + ''.join('<a i=\"%d\"><b>t</b></a>' % i for i in range(500)) + '</r>'\n"
        "etree.FunctionNamespace('urn:x')['f'] = lambda context, nodes: len(nodes)",
        "tree = etree.fromstring(text); tree.xpath('//a[@i>100]/b/text()'); tree.xpath('x:f(//b)', namespaces={'x': 'urn:x'}); "
        "etree.tostring(tree, method='c14n'); [one.tag for one in tree.iter()]",
    ),
    "cryptography": (
        "import os\nfrom cryptography.hazmat.primitives import hashes\nfrom cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa\n"
        "from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305\n"
        "key = rsa.generate_private_key(65537, 2048)\ncurve = ec.generate_private_key(ec.SECP256R1())\ndata = os.urandom(20000)",
        "key.sign(data, padding.PKCS1v15(), hashes.SHA256()); curve.sign(data, ec.ECDSA(hashes.SHA256())); "
        "ed25519.Ed25519PrivateKey.generate().sign(data); AESGCM(bytes(32)).encrypt(bytes(12), data, None); "
        "ChaCha20Poly1305(bytes(32)).encrypt(bytes(12), data, None)",
    ),
    "polars": (
        "import random\nimport polars as pl\n"
        "table = pl.DataFrame({'k': [random.randrange(100) for _ in range(50000)], 'v': [random.random() for _ in range(50000)]})",
        "table.group_by('k').agg(pl.col('v').mean()), table.join(table.head(300), on='k'), table.sort(['k', 'v']), "
        "table.head(2000).select(pl.col('v').map_elements(lambda x: x * 2, return_dtype=pl.Float64))",
    ),
    # Much of it has no call frame information: places of it are followed when they are met.
    "cv2": (
        "import cv2, numpy as np\na = (np.random.rand(300, 300, 3) * 255).astype('uint8')\ng = cv2.cvtColor(a, cv2.COLOR_BGR2GRAY)",
        "cv2.GaussianBlur(a, (7, 7), 0); cv2.Canny(g, 50, 100); cv2.imdecode(cv2.imencode('.jpg', a)[1], 1); cv2.medianBlur(a, 5); "
        "cv2.ORB_create().detectAndCompute(g, None); cv2.dft(np.float32(g))",
    ),
}
PROGRAM = """
import time
%s
def work():
    %s
work()
print("{}", flush=True)
end = time.time() + 300
while time.time() < end: work()
"""


def started(argv, **options):
    return harness.started(argv, stdout=subprocess.PIPE, bufsize=0, **options)


@contextlib.contextmanager
def working(name):
    """A program that does what the library is for."""
    try:
        programs = peers.virtual_environment("native-libraries", PACKAGES)
    except peers.Missing as why:
        pytest.skip(str(why))
    environment = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
    with contextlib.ExitStack() as stack:
        if name == "psycopg":
            server = stack.enter_context(started([programs / "python", harness.TOP / "tests" / "targets" / "postgres.py"]))
            environment["PORT"] = str(harness.read_ready_line(server)["port"])
        process = stack.enter_context(started([programs / "python", "-c", PROGRAM % LIBRARIES[name]], env=environment))
        harness.read_ready_line(process)
        yield process


def test_names_when_a_run_ends_beside_a_large_table():
    """Nobody waits for the table any more; names that were to come after it come."""
    with working("cv2") as process:
        for seconds in (0.8, 3, 12):  # beside a load no mapping is known for long
            run = harness.record(process.pid, "--native", seconds=seconds, rate=499)
            if run.stats["native"]["whole"]:
                break
    frames = [frame.text for stack, _ in run.stacks() for frame in stack]
    assert any("(cv2." in text for text in frames), frames
    assert not [text for text in frames if text.startswith("[CPython]")], frames


def count_late(path):
    """{whether they have the mark: samples} of the second half of the time that a profile in json has samples of."""
    profile = json.loads(path.read_text(encoding="utf-8"))
    stacks, frames = profile["stacks"], profile["frames"]

    def is_marked(stack):
        return stack is not None and (frames[stacks[stack]["frame"]]["name"] == INCOMPLETE or is_marked(stacks[stack]["parent"]))

    half, late = profile["events"][-1][0] / 2, collections.Counter()
    for moment, sample, count in profile["events"]:
        if moment > half:
            late[is_marked(profile["samples"][sample]["stack"])] += count
    return late


@pytest.mark.parametrize("name", LIBRARIES)
def test_stacks_are_whole(name, tmp_path):
    path = tmp_path / "p.json"
    words = ["--native", "--timestamps", "-f", "json", "-o", path]
    with working(name) as process:
        run = harness.record_busy(process.pid, *words, fewest=500, seconds=SECONDS, rate=RATE)
    assert run.stats["native"]["not_joined"] == 0, run.stats["native"]
    late = count_late(path)
    assert late.total() > 200 and late[False] >= WHOLE * late.total(), (late, run.stats["native"])
