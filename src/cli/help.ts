// What `--help` prints: the whole program, one noun with its verbs, one command. The last two are made from the
// definitions.

import type { CommandShape } from './command.ts'
import { optionsOf } from './read-input.ts'

export const help = `tollgate: one gateway over many models, in the OpenAI and the Anthropic dialect

Usage
  tollgate [serve]        start the gateway (also: npm start); --port N, --data FOLDER and more: serve --help

  tollgate workspaces     list, create, show; export and erase all that is kept of one
  tollgate projects       list, create, update
  tollgate keys           list, create, revoke, rotate
  tollgate limits         show and put limits of a workspace, a project or a key
  tollgate wallet         balance, topup, correct, transfers
  tollgate credentials    a workspace's own provider keys: list, put, delete
  tollgate models         what is on offer, at what price
  tollgate route MODEL    where a request would go now, and why
  tollgate prices         what a model costs, changed while running: set, reset, history
  tollgate requests       what was asked, live with --follow; show one
  tollgate usage          tokens and cost added up by day, model, project, as CSV
  tollgate explain ID     one charge, to the nano-dollar
  tollgate audit          who changed what; verify: that nobody changed the log
  tollgate ledger verify  recompute the books
  tollgate doctor         what is wrong, and what to do about it
  tollgate providers      which are on, what the others need; add one to the configuration file
  tollgate config         settings in force; workspaces, projects and keys from a file: plan, apply, export
  tollgate secrets        replace the master secret without downtime: status, rotate
  tollgate backup FILE    the embedded database in one file, while the gateway serves
  tollgate restore FILE   put it back into an empty data folder
  tollgate migrate-to-postgres   from the embedded database to PostgreSQL, proved on both sides
  tollgate connect NAME   point claude, cline, opencode or cursor at the gateway, and back

  tollgate NAME --help    more about one of them
  tollgate --version      the version

Commands talk to a running gateway; --json prints what programs can read.
  TOLLGATE_URL                   its address (from TOLLGATE_HOST and TOLLGATE_PORT)
  TOLLGATE_ADMIN_TOKEN           the management token (from the file admin-token in TOLLGATE_DATA)
Exit codes: 0 done, 1 failed, 2 usage, 3 not authorised, 4 not found, 5 limit or balance.

Settings come from options of serve, then the environment, then tollgate.yaml, then defaults.
  TOLLGATE_HOST, TOLLGATE_PORT   where to listen (127.0.0.1, 8080; port 0 = any free one)
  TOLLGATE_DATA                  folder of the database and generated secrets (./data)
  TOLLGATE_CONFIG                configuration file (./tollgate.yaml if it is there)
  TOLLGATE_SECRET                master secret (generated into the data folder)
  TOLLGATE_SANDBOX               off hides the offline sandbox models (on)
  TOLLGATE_LOG                   pretty or json (pretty on a terminal)
  TOLLGATE_DRAIN_SECONDS         how long a stop waits for running requests (120)
  DATABASE_URL                   postgres://… instead of the embedded SQLite
  OPENAI_API_KEY, ANTHROPIC_API_KEY   switch these providers on

Try it
  npm start                      then run the curl line it prints
  docs/reference/cli.md has every command, configuration.md every setting, docs/errors.md every error.
`

export function usageLine({ words, isDefault, positionals = [], options = {} }: CommandShape): string {
  const [noun, verb] = words
  const parts = [`tollgate ${noun}`]
  if (verb !== undefined) parts.push(isDefault ? `[${verb}]` : verb)
  parts.push(...positionals.map(({ name, isOptional }) => (isOptional ? `[${name}]` : name)))
  if (Object.keys(options).length > 0) parts.push('[options]')
  return parts.join(' ')
}

export function commandHelp(definition: CommandShape): string {
  const { words, summary, details, examples } = definition
  const rows = [...Object.entries(optionsOf(definition))].map(([name, { value, isRepeatable, help: text }]) => {
    return [`--${name}${value === undefined ? '' : ` ${value}`}`, isRepeatable ? `${text}; may be repeated` : text]
  })
  return [
    `tollgate ${words.join(' ')}: ${summary}`,
    '',
    'Usage',
    `  ${usageLine(definition)}`,
    '',
    ...(details === undefined ? [] : [details, '']),
    'Options',
    ...columns(rows),
    '',
    'Try it',
    ...examples.map((example) => `  ${example}`),
    '',
  ].join('\n')
}

export function nounHelp(noun: string, definitions: readonly CommandShape[]): string {
  const own = definitions.filter(({ words }) => words[0] === noun)
  const [only] = own
  if (own.length === 1 && only !== undefined) return commandHelp(only)
  return [
    `tollgate ${noun}`,
    '',
    'Usage',
    ...columns(own.map((definition) => [usageLine(definition), definition.summary])),
    '',
    `tollgate ${noun} VERB --help tells the options.`,
    '',
  ].join('\n')
}

function columns(rows: readonly (readonly string[])[]): string[] {
  const width = Math.max(...rows.map(([left = '']) => left.length))
  return rows.map(([left = '', right = '']) => `  ${left.padEnd(width)}  ${right}`.trimEnd())
}
