"""What is cut, defined and referred to in a file of every language with a grammar: one small program each."""

from __future__ import annotations

import pytest
from scoped_retrieval.pipeline.sources.code import outline_code
from scoped_retrieval.pipeline.sources.file_kinds import file_kind
from scoped_retrieval.pipeline.sources.grammars import SPLITTERS, grammar
from scoped_retrieval.pipeline.sources.lines import Lines

PROGRAMS = {
    "c": (
        "cart.c",
        """
#include "cart.h"
#define MAX_ITEMS 32
#define AREA(w, h) ((w) * (h))
enum color { RED, GREEN };
typedef struct { int x; } Point;
struct cart { item_t *items; };
typedef unsigned int count_t;
typedef struct cart *cart_t;
static item_t **find(struct cart *c, int id) { return lookup(c->items, id); }
int *cart_ids(void), cart_add(struct cart *c, item_t *i);
int cart_add(struct cart *c, item_t *i) { return c->check(i); }
""",
        "AREA GREEN MAX_ITEMS Point RED cart cart_add cart_ids cart_t color color.GREEN color.RED count_t find",
        "cart check item_t lookup",
    ),
    "cpp": (
        "cart.cpp",
        """
namespace shop {
template <typename T>
class Cart : public Base<T> {
 public:
  Cart(int a);
  ~Cart();
  int add(Item& i) const { return i.check(); }
  bool operator==(const Cart& o) const;
};
Foo& Cart::get(int x) { return std::move(find<Foo>(x)); }
shop::Cart::Cart(int a) : Base(a) {}
void shop::Cart<std::string, std::vector<T>>::go() { std::lock_guard<Mutex> lock(mutex_); }
using Items = std::vector<Item>;
}
""",
        "Cart Cart.Cart Cart.add Cart.get Cart.operator== Cart.~Cart Items add get go operator== shop.Cart.Cart shop.Cart.go ~Cart",
        "Base Cart Foo Item Mutex T check find lock_guard move mutex_ string vector",
    ),
    "csharp": (
        "Cart.cs",
        """
using System.Text;
namespace Acme.Shop;
[Serializable]
public class Cart<T> : Base<T>, ICart where T : Item
{
    const int Max = 3;
    public int Size { get; set; }
    public Cart(int a) : base(a) { }
    public Task<Order> Add(Item? item) { item.Check(); return new Order(Make<Order>(item)); }
}
public record Line(int Number);
enum Color { Red }
""",
        "Add Cart Cart.Add Cart.Cart Cart.Max Cart.Size Color Color.Red Line Max Red Size",
        "Base Check ICart Item Make Order Serializable T Task",
    ),
    "go": (
        "cart.go",
        """
package shop

const Max, Min = 3, 1

var ErrFull = errors.New("full")

// Cart holds items.
type Cart[T any] struct{ items []Item }

type Store interface {
	Load(id int) (*Cart, error)
}

func (c *Cart[T]) Add(i Item) *Order { c.check(i); return &Order{} }
func (s Shop) Close() {}
func New() *Cart { return make() }
""",
        "Add Cart Cart.Add Close ErrFull Load Max Min New Shop.Close Store Store.Load",
        "Cart Item New Order Shop T any check error int make",
    ),
    "java": (
        "Cart.java",
        """
package acme.shop;
import acme.base.Base;
@Deprecated
public class Cart<T> extends Base<T> implements Store {
    static final int MAX = 3;
    public Cart(int a) { super(a); }
    @Override public Order add(Item i) { i.check(); return Order.of(this::go); }
    enum Color { RED }
}
record Line(int number) { }
interface Store { void load(); }
""",
        "Cart Cart.Cart Cart.Color Cart.Color.RED Cart.MAX Cart.add Color Line MAX RED Store Store.load add load",
        "Base Deprecated Item Order Override Store T check go of",
    ),
    "kotlin": (
        "Cart.kt",
        """
package acme.shop
import acme.base.Base
const val MAX = 3
typealias Items = List<Item>
class Cart(val a: Int) : Base(a), Store {
    val size: Int = 3
    fun add(item: Item?): Order {
        item.check()
        return make(item)
    }
    enum class Color { RED }
}
object Single : Store
fun String.shout(): String = uppercase()
""",
        "Cart Cart.Color Cart.Color.RED Cart.add Cart.size Color Items MAX RED Single add shout size",
        "Base Int Item List Order Store String check make uppercase",
    ),
    "php": (
        "Cart.php",
        """<?php
namespace Acme\\Shop;
use Acme\\Base;
#[Attr]
final class Cart extends Base implements Store {
    use Countable;
    const MAX = 3;
    private ?Item $item = null;
    public function add(Item $i): Order { $i->check(); $i?->go(); return new Order(Line::of(self::MAX)); }
}
enum Color: string { case Red = 'r'; }
function total() { return sum(); }
""",
        "Cart Cart.MAX Cart.add Cart.item Color Color.Red MAX Red add item total",
        "Attr Base Countable Item Line Order Store check go of sum",
    ),
    "ruby": (
        "cart.rb",
        """
module Shop
  MAX = 3
  class Web::Cart < Base
    include Countable
    def add(i) = i.check(1)
    def self.of
      Line.make
    end
  end
end
describe "a cart" do
  it("adds one") { total }
end
each("not a test") { x }
describe Cart do
end
Small = Class.new(Plain) { }
""",
        "MAX Small Shop Shop.MAX Shop.Web.Cart Shop.Web.Cart.add Shop.Web.Cart.of Web.Cart Cart add of|a cart|a cart > adds one|adds one",
        "Base Cart Class Countable Line Plain check describe each include it make new",
    ),
    "rust": (
        "cart.rs",
        """
use std::io::{self, Read as R, Write};
pub const MAX: u32 = 3;
#[derive(Debug)]
pub struct Cart<T> { x: Vec<T> }
impl<T: Base> fmt::Display for Cart<T> {
    fn add(&self) -> Result<T, Error> { self.x.push(1); line::of::<T>(2); vec![1] }
}
impl Store for &Shop { fn load(&self) {} }
trait Store { fn load(&self); }
enum Color { Red }
macro_rules! total { () => {} }
mod tests { fn adds() {} }
""",
        "Cart Cart.add Color Color.Red MAX Red Shop Shop.load Store Store.load add adds load tests tests.adds total",
        "Base Display Error Read Result Store T Vec Write of push vec",
    ),
    "swift": (
        "Cart.swift",
        """
import Foundation
typealias Items = [Item]
let max = 3
open class Cart: Base, Store {
    static let size = make()
    init(a: Int) { check(a) }
    func add<T: Line>(_ item: T?) -> Order { item.check() }
    enum Color { case red, green }
}
extension Shop.Cart: Countable { func total() {} }
protocol Store { func load() }
""",
        "Cart Cart.Color Cart.Color.green Cart.Color.red Cart.add Cart.init Cart.size Color Items Shop.Cart Shop.Cart.total "
        "Store Store.load add green init load max red size total",
        "Base Countable Int Item Line Order Store T check make",
    ),
    "elixir": (
        "cart.ex",
        """
defmodule Shop.Cart do
  alias Shop.Item
  @max 3
  def add(cart, %Item{} = item) when is_map(item), do: item |> check() |> Repo.insert!()
  defp size, do: @max
  defmacro total(x), do: sum(x)
end
test "adds one", %{cart: cart} do
  assert Cart.go(cart)
end
""",
        "Shop.Cart Shop.Cart.add Shop.Cart.size Shop.Cart.total add size total|adds one",
        "Cart Item Repo Shop.Item assert check go insert! is_map max sum test",
    ),
    "haskell": (
        "Cart.hs",
        """
module Shop (add) where
data Cart a = Cart { items :: [a] } | Empty deriving (Show)
class Priced a where { price :: a -> Int; price _ = zero 0 }
instance Priced (Cart a) where price c = total c
-- | Adds one.
add :: Item -> Cart Item
add x = check x where check = Map.lookup x
a <+> b = a
""",
        "<+> Cart Cart.Empty Cart.items Empty Priced Priced.price add items price",
        "Cart Int Item Priced Show a b check lookup total zero",
    ),
    "lua": (
        "cart.lua",
        """
local M, max = {}, 3
function M.add(cart, item) return util.check(item) end
function M:size() return count(self) end
local function total(cart) return cart:sum() end
M.clear = function(self) end
describe("a cart", function() it("adds one", function() total(1) end) end)
""",
        "M M.add M.clear M.size add clear max size total|a cart|a cart > adds one|adds one",
        "check count describe it sum total",
    ),
    "scala": (
        "Cart.scala",
        """
package shop
trait Cart[F[_]] extends Base { def add(item: Item): F[Unit]; val max = 3 }
object Cart {
  type Id = Int
  given order: Ordering[Cart] = Ordering.by(_.size)
  def of(n: Int) = new Line(check(n)) map make[Item]
}
enum Color { case Red; case Rgb(r: Int) }
""",
        "Cart Cart.Id Cart.add Cart.max Cart.of Cart.order Color Color.Red Color.Rgb Id Red Rgb add max of order",
        "Base Cart F Int Item Line Ordering Unit by check map",
    ),
    "shell": (
        "cart.bash",
        """
readonly MAX=3
FILE=/tmp/cart
add_item() { local item="$1"; check "$item" && echo "$item" >> "$FILE"; }
function shop::total { find_all | sum; }
""",
        "FILE MAX add_item shop::total",
        "check echo find_all sum",
    ),
    "zig": (
        "cart.zig",
        """
const std = @import("std");
pub const Cart = struct {
    const max = 3;
    pub fn add(self: *Cart, item: Item) !void { return self.check(item); }
};
const Color = enum { red, green };
test "adds one" { try go(Line{}); }
""",
        "Cart Cart.add Cart.max Color Color.green Color.red add green max red std|adds one",
        "Cart Item Line check go",
    ),
    "javascript": (
        "cart.js",
        """
import { Base } from "./base.js";
const MAX = 3;
export class Cart extends Base {
  add = (item) => check(item);
  load() { return new Order(this.lines); }
}
export const total = (cart) => sum(cart);
function* walk() {}
describe("the cart", () => { it("adds a line", () => { expect(total(1)); }); });
""",
        "Cart Cart.add Cart.load MAX add load total walk|adds a line|the cart|the cart > adds a line",
        "Base Order cart check describe expect it item sum total",
    ),
    "python": (
        "cart.py",
        """
import json
from shop.base import Base
MAX = 3
class Cart(Base):
    size = make()
    @cached
    def add(self, item: Item) -> Order:
        return check(item)
    async def load(self): ...
def total(cart): return len(cart.lines)
""",
        "Cart Cart.add Cart.load Cart.size MAX add load size total",
        "Base Item Order cached check item len make",
    ),
    "tsx": (
        "Cart.tsx",
        """
import { useCart } from "./cart";
type Props = { item: Item };
export const Row = ({ item }: Props) => <Line item={item} />;
export function Cart() { const cart = useCart(); return <List><Row item={cart.item} /></List>; }
""",
        "Cart Props Row",
        "Item Line List Props Row useCart",
    ),
    "typescript": (
        "cart.ts",
        """
import { Base } from "./base";
export type Items = Array<Item>;
export interface Store { load(id: string): Cart; }
enum Color { Red, Green }
namespace Shop { export const open = () => make(); }
export abstract class Cart extends Base implements Store {
  size = (): number => count();
  add<T>(item: T): Order { return check(item); }
}
export const total = (cart: Cart) => sum(cart);
""",
        "Cart Cart.add Cart.size Color Items Shop Shop.open Store add open size total",
        "Array Base Cart Item Order Store T cart check count item make sum",
    ),
}


def test_every_language_with_a_grammar_has_a_program_here() -> None:
    missing = SPLITTERS - set(PROGRAMS)
    assert not missing, f"add a small program, what it defines and what it refers to, to PROGRAMS: {sorted(missing)}"


@pytest.mark.parametrize("language", PROGRAMS)
def test_what_a_program_defines_and_what_it_refers_to(language: str) -> None:
    path, text, defined, referred = PROGRAMS[language]
    splitter = file_kind(path).splitter
    assert splitter == language
    outline = outline_code(Lines(text.encode()), splitter)
    words, _, titles = defined.partition("|")
    expected = {*words.split(), *(title for title in titles.split("|") if title)}
    assert {name for _, name in outline.symbols} == expected
    assert {name for _, name in outline.calls} == set(referred.split())
    lines = text.split("\n")
    assert all(name.rpartition(" > ")[2].rpartition(".")[2] in lines[at] for at, name in outline.symbols)


def test_a_header_has_the_language_of_c_and_is_cut_as_one_of_cpp() -> None:
    kind = file_kind("include/cart.h")
    assert (kind.language, kind.splitter) == ("c", "cpp")
    outline = outline_code(
        Lines(b"template <class T> class Cart {\n  T* find(int id);\n};\nstruct plain { int x; };\n"), kind.splitter
    )
    assert {name for _, name in outline.symbols} == {"Cart", "Cart.find", "find", "plain"}


def test_a_long_file_of_a_grammar_that_repairs_slowly_is_cut_by_line_windows() -> None:
    text = "fun add() = 1\n" * 4_000
    assert grammar("kotlin").tree(text.encode()) is None
    assert grammar("kotlin").tree(text[:40_000].encode()) is not None


@pytest.mark.parametrize("splitter", sorted(SPLITTERS))
@pytest.mark.parametrize("text", ["", "(" * 5_000, "\ufeff#if 1\n"])
def test_no_text_is_too_odd_for_a_grammar(splitter: str, text: str) -> None:
    lines = Lines(text.encode() or b"\n")
    outline = outline_code(lines, splitter)
    assert all(0 <= chunk.start < chunk.end <= lines.count for chunk in outline.chunks)
