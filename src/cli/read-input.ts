// Reads the arguments of one command against its definition, and says what is wrong in the words of its help.

import { parseArgs } from 'node:util'
import { assert } from '../kernel/assert.ts'
import { nearestNames } from '../kernel/nearest.ts'
import type { CommandInput, CommandShape, OptionDefinition } from './command.ts'
import { type Refusal, usageRefusal } from './refusal.ts'

const everywhere: Readonly<Record<string, OptionDefinition>> = {
  json: { help: 'JSON for programs instead of text for people' },
}

export interface ReadInput {
  readonly input: CommandInput
  readonly json: boolean
}

export function optionsOf(definition: CommandShape): Readonly<Record<string, OptionDefinition>> {
  return { ...definition.options, ...everywhere }
}

export function readInput(definition: CommandShape, args: readonly string[]): ReadInput | Refusal {
  const options = optionsOf(definition)
  const given = readTokens(definition, args)
  const command = `tollgate ${definition.words.join(' ')}`
  if ('fault' in given) return usageRefusal(given.fault, `${command} --help`)
  const fault = positionalFault(definition, given.positionals)
  if (fault !== undefined) return usageRefusal(fault, `${command} --help`)
  const valuesOf = (name: string): readonly string[] | undefined => {
    assert(Object.hasOwn(options, name), `${command} has no option ${name}`)
    return given.values.get(name)
  }
  return {
    json: given.values.has('json'),
    input: {
      positionals: given.positionals,
      text: (name) => valuesOf(name)?.[0],
      texts: (name) => valuesOf(name)?.flatMap(splitAtCommas),
      isSet: (name) => valuesOf(name) !== undefined,
    },
  }
}

function splitAtCommas(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
}

interface Given {
  readonly values: ReadonlyMap<string, readonly string[]>
  readonly positionals: readonly string[]
}

/** Not strict: parseArgs would throw with words of its own, and without the nearest name. */
function readTokens(definition: CommandShape, args: readonly string[]): Given | { readonly fault: string } {
  const options = optionsOf(definition)
  const types = Object.entries(options).map(([name, { value }]) => {
    return [name, { type: value === undefined ? 'boolean' : 'string' }] as const
  })
  const config = { args: [...args], options: Object.fromEntries(types), strict: false, allowPositionals: true }
  const values = new Map<string, string[]>()
  const positionals: string[] = []
  for (const token of parseArgs({ ...config, tokens: true }).tokens) {
    if (token.kind === 'positional') positionals.push(token.value)
    if (token.kind !== 'option') continue
    const option = Object.hasOwn(options, token.name) ? options[token.name] : undefined
    const amount = option === undefined ? negativeAmount(definition, args[token.index]) : undefined
    if (option === undefined) return { fault: amount ?? unknownOption(token.rawName, Object.keys(options)) }
    const fault = valueFault(option, token)
    if (fault !== undefined) return { fault: `${token.rawName} ${fault}` }
    const before = values.get(token.name)
    if (before !== undefined && !option.isRepeatable) return { fault: `${token.rawName} is given twice.` }
    values.set(token.name, [...(before ?? []), token.value ?? ''])
  }
  return { values, positionals }
}

/** A value that looks like an option is most likely one, and the value was forgotten. */
function valueFault(
  { value: expected }: OptionDefinition,
  { value, inlineValue }: { readonly value?: string | undefined; readonly inlineValue?: boolean | undefined },
): string | undefined {
  if (expected === undefined) return value === undefined ? undefined : 'takes no value.'
  if (takesNumber(expected) && isNegative(value)) return `must be above zero, not "${value}".`
  const isForgotten = value === undefined || value.trim() === '' || (value.startsWith('-') && inlineValue !== true)
  return isForgotten ? `needs a value, ${expected}.` : undefined
}

/** `-5` looks like an option to whoever reads arguments, and like an amount to whoever types it. */
function negativeAmount({ positionals = [] }: CommandShape, arg: string | undefined): string | undefined {
  const amount = positionals.find(({ name }) => name === 'AMOUNT')
  return amount && isNegative(arg) ? `${amount.name} must be above zero, not "${arg}".` : undefined
}

function takesNumber(expected: string): boolean {
  return expected === 'N' || expected === 'USD'
}

function isNegative(text: string | undefined): boolean {
  return /^-\$?[0-9.]/.test(text ?? '')
}

function unknownOption(name: string, known: readonly string[]): string {
  const near = nearestNames(name.replace(/^-+/, ''), [...known, 'help'], 1)[0]
  return `there is no option ${name}.${near === undefined ? '' : ` Did you mean --${near}?`}`
}

function positionalFault({ positionals = [] }: CommandShape, given: readonly string[]): string | undefined {
  const extra = given[positionals.length]
  if (extra !== undefined) return `"${extra}" is not understood.`
  const missing = positionals.find(({ isOptional }, at) => !isOptional && given[at] === undefined)
  return missing && `${missing.name} is missing.`
}
