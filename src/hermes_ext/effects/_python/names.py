"""What is known of Python's own names: which of them change nothing, whatever they are given.

The lists hold what people use in short programs. A name that is missing counts as one that may do
anything. A name must not stand here if there is a type that a program can get hold of, by the
names that stand here, on which it changes a file, runs a program, or leads to a module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hermes_ext.effects._table import ToolKind, ToolTable

__all__ = [
    "ATTRIBUTES",
    "BUILTINS",
    "LEADS_AWAY",
    "MODULES",
    "MODULE_NAMES",
    "NEVER_IMPORTED",
    "OWN_DUNDERS",
    "with_tools",
]

_IN_MODULES: Final = """
__future__: annotations
abc: ABC ABCMeta abstractmethod
ast: AST Assign AsyncFunctionDef Attribute Call ClassDef Constant Expr FunctionDef Import ImportFrom
    Module Name dump get_docstring iter_child_nodes literal_eval parse unparse walk
base64: b16decode b16encode b32decode b32encode b64decode b64encode b85decode b85encode
    standard_b64decode standard_b64encode urlsafe_b64decode urlsafe_b64encode
binascii: a2b_base64 a2b_hex b2a_base64 b2a_hex crc32 hexlify unhexlify
bz2: compress decompress
bisect: bisect bisect_left bisect_right insort insort_left insort_right
calendar: calendar day_abbr day_name isleap leapdays month month_abbr month_name monthcalendar
    monthrange timegm weekday
cmath: *
collections: ChainMap Counter OrderedDict defaultdict deque namedtuple
collections.abc: Callable Collection Container Generator Hashable Iterable Iterator Mapping
    MutableMapping MutableSequence MutableSet Sequence Set Sized
colorsys: hls_to_rgb hsv_to_rgb rgb_to_hls rgb_to_hsv
configparser: ConfigParser Error NoOptionError NoSectionError RawConfigParser
contextlib: ExitStack closing contextmanager nullcontext redirect_stderr redirect_stdout suppress
codecs: BOM_UTF8
copy: copy deepcopy
csv: Dialect DictReader DictWriter Error QUOTE_ALL QUOTE_MINIMAL QUOTE_NONE QUOTE_NONNUMERIC Sniffer
    excel excel_tab field_size_limit reader writer
dataclasses: asdict astuple dataclass field fields is_dataclass
datetime: MAXYEAR MINYEAR UTC date datetime time timedelta timezone tzinfo
decimal: Context Decimal InvalidOperation ROUND_CEILING ROUND_DOWN ROUND_FLOOR ROUND_HALF_EVEN
    ROUND_HALF_UP ROUND_UP getcontext localcontext
difflib: Differ HtmlDiff SequenceMatcher context_diff get_close_matches ndiff unified_diff
enum: Enum Flag IntEnum IntFlag StrEnum auto unique
errno: *
fnmatch: filter fnmatch fnmatchcase translate
fractions: Fraction
functools: cache cached_property cmp_to_key lru_cache partial reduce total_ordering
getpass: getuser
glob: escape glob has_magic iglob
gzip: compress decompress
hashlib: algorithms_available algorithms_guaranteed blake2b blake2s file_digest md5 new pbkdf2_hmac
    scrypt sha1 sha224 sha256 sha384 sha3_256 sha3_512 sha512
heapq: heapify heappop heappush heappushpop heapreplace merge nlargest nsmallest
hmac: compare_digest digest new
html: escape unescape
html.entities: codepoint2name name2codepoint
html.parser: HTMLParser
http: HTTPStatus
importlib:
importlib.metadata: PackageNotFoundError metadata packages_distributions requires version
importlib.util:
inspect: cleandoc getdoc getfile getsource getsourcefile getsourcelines isclass isfunction
io: BytesIO SEEK_CUR SEEK_END SEEK_SET StringIO
ipaddress: IPv4Address IPv4Network IPv6Address IPv6Network ip_address ip_interface ip_network
itertools: *
json: JSONDecodeError JSONDecoder JSONEncoder dump dumps load loads
keyword: iskeyword issoftkeyword kwlist softkwlist
linecache: getline getlines
locale: getlocale getpreferredencoding
lzma: compress decompress
math: *
numbers: Complex Integral Number Rational Real
operator: add and_ concat contains countOf eq floordiv ge gt index indexOf inv invert is_ is_not
    itemgetter le lshift lt matmul mod mul ne neg not_ or_ pos pow rshift sub truediv truth xor
os: F_OK PathLike R_OK SEEK_CUR SEEK_END SEEK_SET W_OK X_OK access cpu_count curdir devnull extsep
    fsdecode fsencode fspath get_terminal_size getcwd getegid geteuid getgid getgroups getloadavg
    getlogin getpid getppid getuid linesep listdir lstat name pardir pathsep readlink scandir sep
    stat strerror sysconf uname walk
os.path: abspath basename commonpath commonprefix dirname exists expanduser expandvars getatime
    getctime getmtime getsize isabs isdir isfile islink ismount join lexists normcase normpath
    realpath relpath samefile sameopenfile samestat sep split splitdrive splitext
pathlib: Path PosixPath PurePath PurePosixPath PureWindowsPath
platform: libc_ver machine node platform python_branch python_build python_compiler
    python_implementation python_version python_version_tuple release system version
pprint: PrettyPrinter pformat pp pprint
random: Random betavariate choice choices expovariate gauss getrandbits normalvariate randbytes
    randint random randrange sample seed shuffle triangular uniform
re: A ASCII DOTALL I IGNORECASE M MULTILINE Match NOFLAG Pattern S U UNICODE VERBOSE X compile error
    escape findall finditer fullmatch match purge search split sub subn
secrets: choice compare_digest randbelow token_bytes token_hex token_urlsafe
shlex: join quote shlex split
shutil: copyfileobj disk_usage get_terminal_size which
site: getsitepackages getusersitepackages
stat: ST_MODE ST_MTIME ST_SIZE S_IMODE S_ISDIR S_ISLNK S_ISREG filemode
statistics: StatisticsError correlation fmean geometric_mean harmonic_mean linear_regression mean
    median median_grouped median_high median_low mode multimode pstdev pvariance quantiles stdev
    variance
string: Template ascii_letters ascii_lowercase ascii_uppercase capwords digits hexdigits octdigits
    printable punctuation whitespace
struct: Struct calcsize error iter_unpack pack unpack unpack_from
subprocess: CalledProcessError CompletedProcess DEVNULL PIPE STDOUT SubprocessError TimeoutExpired
sys: api_version argv base_prefix builtin_module_names byteorder copyright exc_info exec_prefix
    executable exit flags float_info getdefaultencoding getfilesystemencoding getrecursionlimit
    getrefcount getsizeof hexversion implementation int_info intern maxsize maxunicode platform
    prefix setrecursionlimit stderr stdin stdlib_module_names stdout thread_info version
    version_info
sysconfig: get_config_var get_config_vars get_path get_paths get_platform get_python_version
    get_scheme_names
tarfile: TarError TarInfo is_tarfile
textwrap: TextWrapper dedent fill indent shorten wrap
time: altzone asctime ctime daylight gmtime localtime mktime monotonic monotonic_ns perf_counter
    perf_counter_ns process_time process_time_ns sleep strftime strptime struct_time time time_ns
    timezone tzname
token: tok_name
tomli: TOMLDecodeError load loads
tomllib: TOMLDecodeError load loads
traceback: format_exc print_exc
types: MappingProxyType SimpleNamespace
typing: AbstractSet Annotated Any AnyStr AsyncIterator Awaitable BinaryIO Callable ClassVar
    Collection Counter DefaultDict Deque Dict Final FrozenSet Generator Generic Hashable IO Iterable
    Iterator List Literal Mapping MutableMapping NamedTuple NewType NoReturn Optional OrderedDict
    ParamSpec Protocol Self Sequence Set Sized TYPE_CHECKING Text TextIO Tuple Type TypeAlias
    TypeVar TypedDict Union cast final overload runtime_checkable
unicodedata: *
urllib:
urllib.parse: parse_qs parse_qsl quote quote_plus unquote unquote_plus urldefrag urlencode urljoin
    urlparse urlsplit urlunparse urlunsplit
uuid: NAMESPACE_DNS NAMESPACE_URL UUID uuid3 uuid4 uuid5
warnings: catch_warnings filterwarnings simplefilter warn
xml:
xml.etree:
xml.etree.ElementTree: ParseError fromstring tostring
xml.sax:
xml.sax.saxutils: escape quoteattr unescape
yaml: YAMLError safe_dump safe_load safe_load_all
zipfile: BadZipFile ZipInfo is_zipfile
zlib: adler32 compress crc32 decompress
zoneinfo: ZoneInfo ZoneInfoNotFoundError available_timezones
"""


def _read(text: str) -> dict[str, frozenset[str]]:
    modules: dict[str, frozenset[str]] = {}
    for entry in text.strip().replace("\n    ", " ").splitlines():
        module, _, names = entry.partition(":")
        modules[module] = frozenset(names.split())
    return modules


MODULES: Final[Mapping[str, frozenset[str]]] = _read(_IN_MODULES)
"""Modules whose import changes nothing, and what in them changes nothing either; `*` for all."""


def with_tools(tools: ToolTable | None) -> Mapping[str, frozenset[str]]:
    """`MODULES`, and the module that code calls the host's tools by."""
    if tools is None or not tools.module:
        return MODULES
    harmless = (row.name for row in tools.of(ToolKind.HARMLESS) if row.parameters is not None)
    return {**MODULES, tools.module: frozenset((*tools.functions, *harmless))}


MODULE_NAMES: Final = frozenset({"__doc__", "__file__", "__name__", "__path__", "__version__"})
"""What is asked of any module."""

_BUILTINS: Final = """
ArithmeticError AssertionError AttributeError BaseException BlockingIOError BrokenPipeError
BufferError BytesWarning ChildProcessError ConnectionAbortedError ConnectionError
ConnectionRefusedError ConnectionResetError DeprecationWarning EOFError Ellipsis EncodingWarning
EnvironmentError Exception FileExistsError FileNotFoundError FloatingPointError FutureWarning
GeneratorExit IOError ImportError ImportWarning IndentationError IndexError InterruptedError
IsADirectoryError KeyError KeyboardInterrupt LookupError MemoryError ModuleNotFoundError NameError
NotADirectoryError NotImplemented NotImplementedError OSError OverflowError
PendingDeprecationWarning PermissionError ProcessLookupError RecursionError ReferenceError
ResourceWarning RuntimeError RuntimeWarning StopAsyncIteration StopIteration SyntaxError
SyntaxWarning SystemError SystemExit TabError TimeoutError TypeError UnboundLocalError
UnicodeDecodeError UnicodeEncodeError UnicodeError UnicodeWarning UserWarning ValueError Warning
ZeroDivisionError __doc__ __file__ __name__ abs aiter all anext any ascii bin bool bytearray bytes
callable chr classmethod complex dict dir divmod enumerate exit filter float format frozenset
hasattr hash hex id input int isinstance issubclass iter len list map max memoryview min next object
oct ord pow print property quit range repr reversed round set slice sorted staticmethod str sum
super tuple type zip
"""

BUILTINS: Final = frozenset(_BUILTINS.split())
"""Built-in names that change nothing, whatever they are given."""

_ATTRIBUTES: Final = """
absolute add add_note add_section anchor append appendleft args as_integer_ratio as_posix as_tuple
as_uri astimezone attrib autojunk basename betavariate bit_count bit_length block_size body
broadcast_address buffer bytes cache_clear cache_info callback capitalize casefold center choice
choices clear close closed code col_offset colno columns combine conjugate count ctime ctx cwd data
date day days decode default_factory defaults deleter denominator dialect difference
difference_update digest digest_size discard doc drive dst elements encode encoding end
end_col_offset end_lineno endpos endswith enter_context errno errors exists expandtabs expanduser
extend extendleft extractfile feed fieldnames filename fileno fill find find_longest_match findall
finditer flags flush fold format format_map fragment from_bytes fromhex fromisocalendar
fromisoformat fromkeys fromordinal fromtimestamp fullmatch func gauss get get_all
get_matching_blocks get_opcodes getboolean getfloat getint getmember getmembers getnames getrandbits
getter getvalue glob group groupdict groupindex groups has_option has_section hex hexdigest home
hostname hosts hour imag index infolist insert int intersection intersection_update is_absolute
is_block_device is_char_device is_dir is_fifo is_file is_global is_integer is_loopback is_mount
is_private is_relative_to is_reserved is_socket is_symlink isalnum isalpha isascii isatty isdecimal
isdigit isdisjoint isidentifier islower isnumeric isocalendar isoformat isoweekday isprintable
isspace issubset issuperset istitle isupper items iter iterdir join joinpath key keys keywords kill
lastgroup lastindex line line_num lineno ljust lower lstat lstrip machine major make_file make_table
maketrans match max maxlen message micro microsecond microseconds min minor minute mode month
most_common move_to_end msg name namelist names netloc netmask network_address new_child newline
nlst node nodename now num_addresses numerator options optionxform orelse origin output owner params
parent parents partition parts password path pattern peek pid poll pop popitem popleft port pos
posix prec prefixlen pretty qualname quantize query quick_ratio randint random randrange ratio raw
re read read_bytes read_dict read_file read_string read_text readable readall readinto readline
readlines readlink real real_quick_ratio reason regs relative_to release remove removeprefix
removesuffix repeat resolve returncode reverse rfind rglob rindex rjust root rotate rpartition
rsplit rstrip safe_substitute samefile sample scheme search second seconds sections seed seek
seekable send set setdefault setter shuffle size sniff sort span split splitlines st_atime st_ctime
st_dev st_gid st_ino st_mode st_mtime st_mtime_ns st_nlink st_size st_uid start startswith stat
stderr stdout stem step stop strerror strftime string strip strptime sub subn substitute subtract
suffix suffixes swapcase symmetric_difference symmetric_difference_update tag tail tell template
terminate text throw time timestamp timetuple timetz title tm_hour tm_isdst tm_mday tm_min tm_mon
tm_sec tm_wday tm_yday tm_year to_bytes to_eng_string to_integral_value tobytes today tolist
toordinal total total_seconds translate truncate type tzinfo tzname uniform union update upper url
urn used username utcfromtimestamp utcnow utcoffset utctimetuple value values version wait walk
weekday width with_name with_prefixlen with_segments with_stem with_suffix with_traceback wrap
writable write writeheader writelines writerow writerows writestr year zfill __doc__ __name__
__qualname__ __version__
"""

ATTRIBUTES: Final = frozenset(_ATTRIBUTES.split())
"""Attributes and methods that change no file, whichever value they are asked of.

What changes one on some values only is looked at where it is called: `copy`, `replace`, `open`.
"""

_LEADS_AWAY: Final = """
ag_await ag_code ag_frame builtins chmod chown co_code communicate copy copy_into cr_await cr_code
cr_frame cr_origin delete exec_module extract extractall f_back f_builtins f_code f_globals f_locals
func_globals genericpath gi_code gi_frame gi_yieldfrom hardlink_to importlib io lchmod link_to load
load_module loader makedev makedir makefile mkdir modules move move_into mro nt open os parser
pathlib popen posix posixpath rename rmdir shutil stdin subprocess symlink_to sys system tb_frame
tb_next touch unlink write_bytes write_text _accessor _execute_child _extract_member _extract_one
_flavour _open_to_write
"""

LEADS_AWAY: Final = frozenset(_LEADS_AWAY.split())
"""Names that a class of a program may not give to something of its own without doubt: asked of
another value, they would be something else.
"""

OWN_DUNDERS: Final = frozenset(
    {"__all__", "__author__", "__doc__", "__hash__", "__slots__", "__version__"}
)
"""Names with two underscores that a program may assign to."""

NEVER_IMPORTED: Final = frozenset(
    {
        "__main__", "antigravity", "code", "doctest", "idlelib", "lib2to3", "pdb", "pydoc",
        "pydoc_data", "sitecustomize", "test", "tests", "this", "tkinter", "turtle", "turtledemo",
        "unittest", "venv", "ensurepip",
    }
)  # fmt: skip
"""Modules of Python's library that none of `MODULES` imports, so a file of that name does not
stand in the way.
"""
