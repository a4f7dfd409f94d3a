// `tollgate prices`: what a model costs, changed while the gateway runs. Prices for long prompts (`over`) are set through
// the API or in the configuration file.

import { type CommandContext, type CommandDefinition, type CommandInput, printJson } from '../command.ts'
import { type JsonObject, objectOf, objectsOf, shownAt, textAt, textsOf } from '../json-members.ts'
import { exitCodes, Refusal, usageRefusal } from '../refusal.ts'
import { shownTime } from '../shown-values.ts'
import { type Column, cleanText, renderTable } from '../table.ts'

const model = { name: 'MODEL' }
const value = 'USD'

/** As the command line and as the API write them, and as the history is headed. */
const fields = [
  ['input', 'input', 'IN $/M'],
  ['output', 'output', 'OUT $/M'],
  ['cache-read', 'cache_read', 'READ $/M'],
  ['cache-write', 'cache_write', 'WRITE $/M'],
  ['cache-write-1h', 'cache_write_1h', '1H $/M'],
  ['audio-input', 'audio_input', 'AUDIO IN $/M'],
  ['audio-cache-read', 'audio_cache_read', 'AUDIO READ $/M'],
  ['audio-output', 'audio_output', 'AUDIO OUT $/M'],
  ['web-search', 'web_search', 'SEARCH $/K'],
  ['us-only', 'us_only', 'US ONLY ×'],
] as const

const typed = Object.fromEntries(fields.map(([option, field]) => [field, `--${option}`]))

/** Few models have a price for sound or for a place, so that such columns come only where there is something in them. */
function shownFields(history: readonly JsonObject[]) {
  const isThere = (field: string) => history.some(({ price }) => field in objectOf(price))
  return fields.filter(([, field]) => !/^(audio|us_only)/.test(field) || isThere(field))
}

function historyColumns(shown: ReturnType<typeof shownFields>): readonly Column[] {
  const prices = shown.map(([, , title]) => ({ title, align: 'right' as const }))
  return [{ title: 'SINCE (UTC)' }, { title: 'VERSION' }, ...prices, { title: 'SET BY' }]
}

const setPrice: CommandDefinition = {
  words: ['prices', 'set'],
  summary: 'sets what a model costs, in USD per million tokens, from the next request on',
  details:
    'Requests that run keep their price. A cache price that is not given is that of input, sound without one costs as text (from a cache: as other sound), searches without one are not charged, and work kept in the United States (inference_geo) costs no more without a factor. A price that stands in the configuration file is changed there.',
  positionals: [model],
  options: {
    input: { value, help: 'input tokens' },
    output: { value, help: 'output tokens, reasoning included' },
    'cache-read': { value, help: 'input tokens read from a cache' },
    'cache-write': { value, help: 'input tokens written to a short cache' },
    'cache-write-1h': { value, help: 'input tokens written to a one-hour cache' },
    'audio-input': { value, help: 'sound among the input tokens' },
    'audio-cache-read': { value, help: 'sound among the tokens read from a cache' },
    'audio-output': { value, help: 'sound among the output tokens' },
    'web-search': { value, help: 'a thousand searches of the web, run by the provider' },
    'us-only': { value: 'FACTOR', help: 'token prices times this where the work is kept in the United States' },
    free: { help: 'costs nothing' },
  },
  examples: [
    'tollgate prices set acme/large --input 2.50 --output 10 --cache-read 0.25',
    'tollgate prices set acme/small --free',
  ],
  async run(context, input) {
    const price = readPrice(input)
    if (price instanceof Refusal) return price
    return await change(context, input, { method: 'PUT', body: price })
  },
}

const resetPrice: CommandDefinition = {
  words: ['prices', 'reset'],
  summary: 'takes back a price that was set; the built-in one holds from the next request on',
  positionals: [model],
  options: { yes: { help: 'do not ask, also on a terminal' } },
  examples: ['tollgate prices reset acme/large'],
  async run(context, input) {
    if (context.terminal.isInteractive && !input.isSet('yes')) {
      const answer = await context.terminal.ask(`Take back the price of ${cleanText(modelOf(input))}? [y/N] `)
      if (!/^y(es)?$/i.test(answer.trim())) return new Refusal(exitCodes.failed, 'nothing was changed.', '--yes')
    }
    return await change(context, input, { method: 'DELETE' })
  },
}

const priceHistory: CommandDefinition = {
  words: ['prices', 'history'],
  summary: 'lists every price a model had, newest first',
  positionals: [model],
  examples: ['tollgate prices history acme/large'],
  async run(context, input) {
    const answer = await readNow(context, input)
    if (answer instanceof Refusal) return answer
    if (context.json) return printJson(context, answer)
    const history = objectsOf(answer.history)
    const shown = shownFields(history)
    const rows = history.map((each) => [
      shownTime(textAt(each, 'effective_from')),
      shownAt(each, 'version'),
      ...shown.map(([, field]) => shownIn(each, field)),
      shownAt(each, 'source'),
    ])
    context.terminal.print(renderTable(historyColumns(shown), rows, context.terminal))
    if (answer.price === null) context.terminal.complain(`${cleanText(modelOf(input))} has no price now.\n`)
    return undefined
  },
}

export const priceCommands: readonly CommandDefinition[] = [setPrice, resetPrice, priceHistory]

type Change = { readonly method: 'PUT'; readonly body: JsonObject | 'free' } | { readonly method: 'DELETE' }

async function change(context: CommandContext, input: CommandInput, how: Change): Promise<Refusal | undefined> {
  const path = pathOf(input)
  const before = await readNow(context, input)
  if (before instanceof Refusal) return before
  const after = await context.api.call({ path, ...how, typed })
  if (after instanceof Refusal) return after
  if (context.json) return printJson(context, after)
  context.terminal.print(`was  ${cleanText(shownPrice(before))}\nnow  ${cleanText(shownPrice(after))}\n`)
  for (const warning of textsOf(after.warnings)) context.terminal.complain(`Warning: ${cleanText(warning)}\n`)
  return undefined
}

async function readNow({ api }: CommandContext, input: CommandInput): Promise<JsonObject | Refusal> {
  const answer = await api.call({ path: pathOf(input) })
  const isMissing = answer instanceof Refusal && answer.exit === exitCodes.notFound
  return isMissing ? new Refusal(answer.exit, `there is no model ${modelOf(input)}.`, 'tollgate models') : answer
}

function readPrice(input: CommandInput): JsonObject | 'free' | Refusal {
  const given = fields.flatMap(([option, field]) => {
    const text = input.text(option)
    return text === undefined ? [] : [[field, text.replace(/^\$/, '')] as const]
  })
  const price = Object.fromEntries(given)
  if (input.isSet('free') && given.length === 0) return 'free'
  if (!input.isSet('free') && price.input !== undefined && price.output !== undefined) return price
  return usageRefusal('give --input and --output, or --free alone.', 'tollgate prices set --help')
}

/** `$2.50 in, $10.00 out   acme/large#2, management API` */
function shownPrice(answer: JsonObject): string {
  if (answer.price === null) return 'no price; cannot be called'
  const row = objectOf(answer.price)
  const words = answer.price === 'free' ? 'free' : `$${shownAt(row, 'input')} in, $${shownAt(row, 'output')} out`
  return `${words}   ${shownAt(answer, 'version')}, ${shownAt(answer, 'source')}`
}

function shownIn(entry: JsonObject, field: string): string {
  return entry.price === 'free' ? 'free' : shownAt(objectOf(entry.price), field)
}

function modelOf({ positionals }: CommandInput): string {
  return positionals[0] ?? ''
}

function pathOf(input: CommandInput): string {
  return `/api/models/${encodeURIComponent(modelOf(input))}/price`
}
