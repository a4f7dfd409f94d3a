// Names of tools' arguments as Anthropic takes them, with the way back: one field of one tool that is called otherwise
// (`$filter`, `filter[id]`) is a 400 for the whole request. Only fields at the root are looked at there, so that only those
// are renamed: in the schema, and in the calls of the history.

import { JsonNode } from '../../wire/json-node.ts'
import type { RawJson } from '../canonical/conversation.ts'
import { parseJson, recordOf } from '../canonical/json-value.ts'
import { jsonArray, jsonObject, jsonString } from './json-text.ts'
import { SchemaBudget } from './schema-budget.ts'
import { ToolNames } from './tool-names.ts'

/** https://github.com/decocms/studio/pull/6874, 2026-09 */
const namesMax = 64
const characters = 'A-Za-z0-9_.-'
const legal = new RegExp(`^[${characters}]{1,${namesMax}}$`)

/** The caller's name of a field → the one that is sent. One that the schema does not name is nobody's to mend. */
type SentNames = ReadonlyMap<string, string>

export class ArgumentNames {
  readonly #byTool = new Map<string, SentNames>()
  readonly #schemas = new SchemaBudget()

  /** The schema of a tool, known by the name it is sent with; the very text that came where all names are legal. */
  inSchema(tool: string, schema: RawJson): RawJson {
    const all = Object.keys(recordOf(recordOf(parseJson(schema)).properties))
    // Each new name is a hash. What is too much for one request the provider will refuse by its names.
    if (all.every((name) => legal.test(name)) || this.#schemas.take(schema) !== undefined) return schema
    const legalNames = new ToolNames(all, namesMax, characters)
    const names = new Map(all.map((name) => [name, legalNames.sent(name)] as const))
    const root = JsonNode.of(schema)
    const fields = root.member('properties')?.members()
    // Names that stand twice: the provider will say what it thinks of it.
    if (!fields) return schema
    this.#byTool.set(tool, names)
    const required = root.member('required')?.elements()
    return jsonObject(
      (root.members() ?? []).map(([name, value]) => {
        if (name === 'properties') return [name, renamed(fields, names)] as const
        if (name === 'required' && required) return [name, jsonArray(required.map((each) => renamedEntry(each, names)))]
        return [name, value.text] as const
      }),
    )
  }

  /** The arguments of a call of that tool. */
  inCall(tool: string, input: RawJson): RawJson {
    const names = this.#byTool.get(tool)
    const fields = names && JsonNode.of(input).members()
    return fields ? renamed(fields, names) : input
  }

  /** By the name a tool is sent with: sent name of a field → the caller's. */
  get undo(): ReadonlyMap<string, ReadonlyMap<string, string>> {
    return new Map([...this.#byTool].map(([tool, names]) => [tool, undoOf(names)]))
  }
}

function undoOf(names: SentNames): ReadonlyMap<string, string> {
  return new Map([...names].flatMap(([name, sent]) => (name === sent ? [] : [[sent, name] as const])))
}

function renamed(fields: readonly (readonly [string, JsonNode])[], names: SentNames): RawJson {
  return jsonObject(fields.map(([name, value]) => [names.get(name) ?? name, value.text] as const))
}

function renamedEntry({ text }: JsonNode, names: SentNames): RawJson {
  const name: unknown = JSON.parse(text)
  return typeof name === 'string' ? jsonString(names.get(name) ?? name) : text
}
