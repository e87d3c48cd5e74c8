import pytest

from ark.errors import ConfigError
from ark.fabric import Fabric, dual_plane, fat_tree, leaf_spine, load_fabric, paper_fabric
from ark.fabric.hash_spec import HashSpec


def faults(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load_fabric(text, "f.toml")
    return str(caught.value)


def same(one: Fabric, other: Fabric) -> bool:
    return (
        one.digest() == other.digest()
        and one.hosts == other.hosts
        and one.links == other.links
        and one.switches == other.switches
        and one.attachments == other.attachments
        and (one.prefill, one.decode) == (other.prefill, other.decode)
    )


LEAF_SPINE = """\
kind = "leaf-spine"
leaves = 2
spines = 4
hosts_per_leaf = 8
"""


@pytest.mark.parametrize(
    ("text", "fabric"),
    [
        (LEAF_SPINE, paper_fabric()),
        (
            LEAF_SPINE + 'rate = "200Gbps"\nfabric_rate = "400 Gbit/s"\ndelay = "1us"\nnics_per_host = 2\n'
            'rail_optimised = true\nparallel_links = 2\nparallel_as = "lag"\nnext_hop_order = "descending"\n'
            'addresses = "ns3"\nprefill = ["h4-h7"]\n[hash]\nfunction = "crc32"\nseed = 7\n',
            leaf_spine(
                2,
                4,
                8,
                rate_bps=200 * 10**9,
                fabric_rate_bps=400 * 10**9,
                delay_ns=1000,
                nics_per_host=2,
                rail_optimised=True,
                parallel_links=2,
                parallel_as="lag",
                next_hop_order="descending",
                addresses="ns3",
                prefill=("h4", "h5", "h6", "h7"),
                hash=HashSpec(function="crc32", seed=7),
            ),
        ),
        ('kind = "fat-tree"\nk = 5\n', fat_tree(5)),
        (
            ('kind = "fat-tree"\npods = 3\nleaves_per_pod = 2\naggs_per_pod = 3\ncores_per_agg = 2\n'
            'hosts_per_leaf = 1\ncore_rate = "1 Tbit/s"\n'),
            fat_tree(
                3,
                leaves_per_pod=2,
                aggs_per_pod=3,
                cores_per_agg=2,
                hosts_per_leaf=1,
                core_rate_bps=10**12,
            ),
        ),
        (
            ('kind = "dual-plane"\nsegments = 2\nspines_per_plane = 3\nhosts_per_segment = 2\n'
            'host_hash = {function = "xor16"}\n[[switch]]\nname = "spine1"\nup = false\n'
            '[[link]]\nbetween = ["h0", "tor1"]\nup = false\n'),
            dual_plane(
                2, 3, 2, down=("spine1", ("tor1", "h0")), host_hash=HashSpec(function="xor16")
            ),
        ),
    ],
)  # fmt: skip
def test_a_file_means_what_the_generator_means(text: str, fabric: Fabric) -> None:
    assert same(load_fabric(text, "f.toml"), fabric)


def test_every_fault_of_a_file_is_told_at_once() -> None:
    text = LEAF_SPINE + (
        'rate = "100"\n"big key" = 1\nprefill = ["h0-h3", "h99"]\n'
        '[hash]\nselection = "modul"\n[[link]]\nbetween = ["leaf0", "spine9"]\nupp = false\n'
        '[[switch]]\nname = "leaf7"\nnode_id = "x"\n'
    )
    assert faults(text).splitlines() == [
        (
            'f.toml: "big key": unknown key "big key"; known are name, rate, delay, addresses, prefill, '
            "decode, next_hop_order, hash, lag_hash, host_hash, fabric_rate, nics_per_host, host, switch, "
            "link, leaves, spines, hosts_per_leaf, rail_optimised, parallel_links, parallel_as"
        ),
        'f.toml: rate: "100" has no unit; write "100 Gbit/s"',
        (
            'f.toml: hash.selection: "modul" is not allowed; allowed are modulo, resilient, thresholds; '
            'did you mean "modulo"?'
        ),
        'f.toml: link[0].upp: unknown key "upp"; did you mean "up"?',
        'f.toml: switch[0].node_id: "x" is no whole number',
        'f.toml: switch[0].name: unknown switch "leaf7"; did you mean "leaf1"?',
        'f.toml: link[0].between: the fabric has no link between "leaf0" and "spine9"',
        'f.toml: prefill: unknown host "h99"; did you mean "h9"?',
    ]
