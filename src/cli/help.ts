// The output of `--help`: the whole program, one noun with its verbs, or one command. The last two are made from the
// command definitions.

import { variableHelp, variablesInHelp } from '../config/reference.ts'
import { aliasOf, type CommandShape, optionsOf } from './command.ts'

const providerKeys = ['OPENAI_API_KEY, ANTHROPIC_API_KEY', 'enable these providers']

export const help = `tollgate: one gateway over many models, with the APIs of OpenAI, Anthropic and Gemini

Usage
  tollgate [serve]        start the gateway; --port N, --data FOLDER and more: serve --help

  tollgate workspaces     list, create, show, update; export or erase everything stored about one
  tollgate projects       list, create, show, update, delete
  tollgate people         list, invite, role, remove, reset-password
  tollgate invitations    list, withdraw
  tollgate sessions       your sessions in the console: list, end
  tollgate devices        devices on which people are signed in: list, end, end-all
  tollgate tokens         your personal management tokens: list, revoke
  tollgate account        alerts: choose the alerts that you get by e-mail
  tollgate keys           list, create, show, revoke, rotate
  tollgate limits         show, set or replace the limits of a workspace, a project or a key
  tollgate groups         sets of people and keys, for spend limits: list, create, show, add, remove, rename, delete
  tollgate wallet         show, topup, correct, transfers; pay by card, payments, refund
  tollgate plans          credit for every day, week or month that expires: list, put, delete; show, choose, end
  tollgate auto-topup     automatic top-up from a saved card
  tollgate credentials    a workspace's own provider keys: list, put, delete
  tollgate models         available models and their prices; --all also those whose provider is off
  tollgate route MODEL    where a request would go now, and why
  tollgate prices         change prices while running: set, update from a list, reset, history
  tollgate price-lists    what some workspaces pay instead: list, show, set, delete
  tollgate requests       list requests, live with --follow; show one
  tollgate batches        list batches, show one with its progress; create, cancel, print results
  tollgate usage          tokens and cost by day, model or project, as CSV
  tollgate statements     what a workspace spent in a month, line by line: show, export
  tollgate explain ID     one charge in detail, to the nano-dollar
  tollgate reconcile      providers' bills against what was recorded: run, report, export
  tollgate focus export   charges or costs as FOCUS files, for cost tools
  tollgate alerts         low balances, spend limits, providers that are down, changed prices
  tollgate alert-rules    what raises an alert, and who gets it: list, create, update, delete
  tollgate webhooks       where alerts are sent: list, create, delete, test, deliveries, replay
  tollgate audit          who changed what; verify that the log was not tampered with
  tollgate ledger verify  recompute every balance and every charge
  tollgate console        a new sign-in link for the console
  tollgate doctor         check the configuration and everything else a gateway needs; says what to do
  tollgate providers      enabled providers, what the others need; add one; their history and incidents
  tollgate config         settings in effect; workspaces, projects, keys and managed settings from a file: plan, apply, export
  tollgate secrets        replace the master secret without downtime: status, rotate
  tollgate backup FILE    copy the embedded database to one file, while the gateway is running
  tollgate restore FILE   restore it into an empty data folder
  tollgate migrate-to-postgres   copy the embedded database to PostgreSQL and verify both sides
  tollgate import         configuration of LiteLLM, OpenRouter or new-api: import litellm config.yaml
  tollgate login [URL]    sign in to a gateway, for the agents on this machine
  tollgate logout [URL]   sign out: revoke and delete the tokens of this machine
  tollgate whoami         who you are signed in as, or who the management token belongs to
  tollgate token          print a short-lived access token, for programs that run a command to get one
  tollgate proxy          add your token to requests of programs on this machine that cannot fetch one
  tollgate connect NAME   point claude, codex, opencode, cline and other agents at the gateway, and back
  tollgate version        the version; verify the files of a release
  tollgate completion     print a script that completes commands and options in bash, zsh or fish

  tollgate NAME --help    help for one of them; ls, get, set and delete also work for list, show, update and revoke

Commands talk to a running gateway; --json prints JSON.
  TOLLGATE_URL          its address (from TOLLGATE_HOST and TOLLGATE_PORT)
  TOLLGATE_ADMIN_TOKEN  the management token (from the file admin-token in TOLLGATE_DATA), or a personal one
Exit codes: 0 success, 1 failed, 2 usage, 3 not authorised, 4 not found, 5 limit or balance.

Settings come from options of serve, then the environment, then tollgate.yaml, then defaults.
${columns([...variablesInHelp.map((name) => [name, variableHelp(name)]), providerKeys]).join('\n')}

Try it
  tollgate, then run the curl line it prints
  The gateway serves its documentation at /docs: every command, every setting, every error.
`

export function usageLine({ words, isDefault, positionals = [], options = {} }: CommandShape): string {
  const [noun, verb] = words
  const parts = [`tollgate ${noun}`]
  if (verb !== undefined) parts.push(isDefault ? `[${verb}]` : verb)
  parts.push(...positionals.map(({ name, isOptional }) => (isOptional ? `[${name}]` : name)))
  if (Object.keys(options).length > 0) parts.push('[options]')
  return parts.join(' ')
}

/** `own`: the commands of its noun. */
export function commandHelp(definition: CommandShape, own: readonly CommandShape[] = [definition]): string {
  const { words, summary, details, examples } = definition
  const alias = aliasOf(definition, own)
  const rows = Object.entries(optionsOf(definition)).map(([name, option]) => {
    const { value, isRequired, isRepeatable, help: text } = option
    const notes = [isRequired && '; required', isRepeatable && '; may be repeated'].filter(Boolean)
    return [`--${name}${value === undefined ? '' : ` ${value}`}`, [text, ...notes].join('')]
  })
  return [
    `tollgate ${words.join(' ')}: ${summary}`,
    '',
    'Usage',
    `  ${usageLine(definition)}`,
    ...(alias === undefined ? [] : [`  tollgate ${words[0]} ${alias} is the same`]),
    '',
    ...(details === undefined ? [] : [...wrapped(details), '']),
    'Options',
    ...columns(rows),
    '',
    'Examples',
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
    ...columns(
      own.map((definition) => {
        const alias = aliasOf(definition, own)
        return [usageLine(definition), `${definition.summary}${alias === undefined ? '' : ` (also: ${alias})`}`]
      }),
    ),
    '',
    `tollgate ${noun} VERB --help shows the options.`,
    '',
  ].join('\n')
}

const lineMax = 110

/** Joins the lines of a paragraph and breaks it at `lineMax`. Indented lines, such as steps, stay as they are. */
function wrapped(text: string): string[] {
  const paragraphs: string[] = []
  for (const line of text.split('\n')) {
    const last = paragraphs.at(-1)
    if (last === undefined || last.startsWith(' ') || line.startsWith(' ')) paragraphs.push(line)
    else paragraphs[paragraphs.length - 1] = `${last} ${line}`
  }
  return paragraphs.flatMap((paragraph) => {
    if (paragraph.startsWith(' ')) return [paragraph]
    const lines: string[] = []
    for (const word of paragraph.split(' ')) {
      const last = lines.at(-1)
      if (last === undefined || last.length + 1 + word.length > lineMax) lines.push(word)
      else lines[lines.length - 1] = `${last} ${word}`
    }
    return lines
  })
}

function columns(rows: readonly (readonly string[])[]): string[] {
  const width = Math.max(...rows.map(([left = '']) => left.length))
  return rows.map(([left = '', right = '']) => `  ${left.padEnd(width)}  ${right}`.trimEnd())
}
