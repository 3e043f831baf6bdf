; grammar: tree_sitter_elixir.language
(call target: (identifier) @_kind (arguments . (alias) @name) (do_block)
    (#any-of? @_kind "defmodule" "defprotocol" "defimpl")) @class
(call target: (identifier) @_kind (arguments . [
        (identifier) @name
        (call target: (identifier) @name)
        (binary_operator left: [(identifier) @name (call target: (identifier) @name)] operator: "when")
    ])
    (#match? @_kind "^def")) @function
(call target: (identifier) @tester (arguments . (string) @name) (do_block)) @test

(call target: (dot right: (identifier) @reference))
(call target: (identifier) @reference (arguments) (#not-match? @reference "^(def|alias|import|require|use)"))
(binary_operator operator: "|>" right: (identifier) @reference)
(alias) @reference
