"""Compiled: the exact products of a few int16 vectors with a few others, all at once, in the processor's registers.

Gives `tile`, the number of queries and rows in one, and functions that find the few products of a tile that matter.
Needs numba; see `compiled.kernels`.

Note: two components are packed into one int32, because processors multiply such pairs and add them up in one step (x86:
`vpdpwssd`, `vpmaddwd`). That takes a third of the time of float32 and rounds nothing. Loops in Python do not compile to
it, so the instructions are written out. Sums are modulo 2**32: intermediate overflow cancels out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from llvmlite import ir  # pyright: ignore[reportMissingImports]
from numba import types  # pyright: ignore[reportMissingImports]
from numba.core.registry import cpu_target  # pyright: ignore[reportMissingImports]
from numba.extending import intrinsic  # pyright: ignore[reportMissingImports]

_I16, _I32, _I64 = ir.IntType(16), ir.IntType(32), ir.IntType(64)


class _Shape(NamedTuple):
    """Sizes that fit the registers: numbers per register, registers of rows, queries, and the instruction."""

    lanes: int
    registers: int
    queries: int
    name: str


def shape_of(features: Sequence[str]) -> _Shape:
    """Selected by the features that numba compiles for."""
    if "+avx512vnni" in features:
        return _Shape(16, 2, 12, "llvm.x86.avx512.vpdpwssd.512")
    if "+avx512bw" in features:
        return _Shape(16, 2, 10, "llvm.x86.avx512.pmaddw.d.512")
    if "+avx2" in features:
        return _Shape(8, 2, 5, "llvm.x86.avx2.pmadd.wd")
    return _Shape(4, 2, 4, "")


SHAPE = shape_of(cpu_target.target_context.codegen().magic_tuple()[2].split(","))
ROWS, QUERIES = SHAPE.lanes * SHAPE.registers, SHAPE.queries
"""Rows and queries of a tile."""


@intrinsic
def tile(typingctx: Any, queries: Any, rows: Any, pairs: Any, out: Any) -> Any:
    """Writes the products of `QUERIES` vectors with `ROWS` others to int32[QUERIES, ROWS]; all arguments are numbers.

    `queries` is the address of int32[pairs, QUERIES], `rows` of int32[pairs, ROWS], each int32 a pair of int16.
    """
    del typingctx

    def code(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        del context, signature
        _write(builder, *arguments)

    return types.void(types.uintp, types.uintp, types.intp, types.uintp), code


@intrinsic
def reaching(typingctx: Any, line: Any, least: Any) -> Any:
    """Which of `ROWS` products, from the address `line` on, are at least `least`: a bit of an int64 for each."""
    del typingctx

    def code(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        del context, signature
        at, least = arguments
        numbers = ir.VectorType(_I32, ROWS)
        products = builder.load(builder.inttoptr(at, numbers.as_pointer()), align=4)
        alone = builder.insert_element(ir.Constant(numbers, ir.Undefined), least, _I32(0))
        every = builder.shuffle_vector(alone, ir.Constant(numbers, ir.Undefined), _constant([0] * ROWS))
        reached = builder.icmp_signed(">=", products, every)
        return builder.zext(builder.bitcast(reached, ir.IntType(ROWS)), _I64)

    return types.int64(types.uintp, types.int32), code


@intrinsic
def lowest(typingctx: Any, bits: Any) -> Any:
    """The place of the lowest bit that is set; one must be."""
    del typingctx

    def code(context: Any, builder: ir.IRBuilder, signature: Any, arguments: Any) -> Any:
        del context, signature
        return builder.cttz(arguments[0], ir.IntType(1)(1))

    return types.int64(types.int64), code


def _write(builder: ir.IRBuilder, queries: Any, rows: Any, pairs: Any, out: Any) -> None:
    """One pass over the pairs; every sum has a register of its own."""
    lanes, registers, count, _ = SHAPE
    numbers = ir.VectorType(_I32, lanes)
    before = builder.block
    loop, after = builder.append_basic_block("pairs"), builder.append_basic_block("sums")
    query_at, row_at = (builder.inttoptr(at, _I32.as_pointer()) for at in (queries, rows))
    builder.branch(loop)
    builder.position_at_end(loop)
    at = builder.phi(_I64)
    at.add_incoming(_I64(0), before)
    sums = [builder.phi(numbers) for _ in range(count * registers)]
    row_base = builder.gep(row_at, [builder.mul(at, _I64(ROWS))])
    query_base = builder.gep(query_at, [builder.mul(at, _I64(count))])
    held = []
    for register in range(registers):
        place = builder.bitcast(builder.gep(row_base, [_I64(register * lanes)]), numbers.as_pointer())
        held.append(builder.load(place, align=4))
    added = []
    for query in range(count):
        one = builder.load(builder.gep(query_base, [_I64(query)]), align=4)
        alone = builder.insert_element(ir.Constant(numbers, ir.Undefined), one, _I32(0))
        every = builder.shuffle_vector(alone, ir.Constant(numbers, ir.Undefined), _constant([0] * lanes))
        added += [_step(builder, sums[query * registers + r], every, held[r]) for r in range(registers)]
    following = builder.add(at, _I64(1))
    at.add_incoming(following, loop)
    for old, new in zip(sums, added, strict=True):
        old.add_incoming(ir.Constant(numbers, [0] * lanes), before)
        old.add_incoming(new, loop)
    builder.cbranch(builder.icmp_signed("<", following, pairs), loop, after)
    builder.position_at_end(after)
    target = builder.inttoptr(out, _I32.as_pointer())
    for number, total in enumerate(added):
        place = builder.bitcast(builder.gep(target, [_I64(number * lanes)]), numbers.as_pointer())
        builder.store(total, place, align=4)


def _step(builder: ir.IRBuilder, total: Any, one: Any, other: Any) -> Any:
    """`total` and the products of two pairs each."""
    lanes, name = SHAPE.lanes, SHAPE.name
    numbers, halves = ir.VectorType(_I32, lanes), ir.VectorType(_I16, 2 * lanes)
    if "vpdpwssd" in name:
        return builder.call(_function(builder, name, numbers, [numbers] * 3), [total, one, other])
    pair = [builder.bitcast(value, halves) for value in (one, other)]
    if name:
        return builder.add(total, builder.call(_function(builder, name, numbers, [halves] * 2), pair))
    for first in (0, 1):
        chosen = _constant(list(range(first, 2 * lanes, 2)))
        parts = [builder.shuffle_vector(value, ir.Constant(halves, ir.Undefined), chosen) for value in pair]
        left, right = (builder.sext(part, numbers) for part in parts)
        total = builder.add(total, builder.mul(left, right))
    return total


def _function(builder: ir.IRBuilder, name: str, gives: Any, takes: list[Any]) -> Any:
    """The declaration of an instruction."""
    module = builder.module
    return module.globals.get(name) or ir.Function(module, ir.FunctionType(gives, takes), name)


def _constant(numbers: list[int]) -> Any:
    return ir.Constant(ir.VectorType(_I32, len(numbers)), numbers)
