// What is written about settings and variables: the lines of `--help` and the tables of docs/reference/configuration.md.
// `bun run src/config/reference.ts` renews that page and tollgate.schema.json.

import { assert } from '../kernel/failure.ts'
import { settingVariables, type VariableRow, variables } from './environment.ts'
import { renderJsonSchema } from './schema.ts'
import { defaultText, plainText, type Setting, valuesText } from './setting.ts'
import { sectionNames, sections } from './settings.ts'

type Described = Pick<Setting, 'help' | 'details' | 'inHelp' | 'needsRestart'>

/** `setting`: `server.port` and its row, if it has a place in the file. */
const describedVariables: readonly {
  readonly name: string
  readonly row: Described
  readonly default: string
  readonly setting?: readonly [name: string, row: Setting]
}[] = [
  ...settingVariables.map(({ section, key, row, name }) => {
    return { name, row, default: defaultText(row), setting: [`${section}.${key}`, row] as const }
  }),
  ...Object.entries<VariableRow>(variables).map(([name, row]) => ({ name, row, default: row.unset })),
]

/** The variables that `tollgate --help` lists. */
export const variablesInHelp: readonly string[] = describedVariables.flatMap(({ name, row }) =>
  row.inHelp ? [name] : [],
)

/** `address to listen on (127.0.0.1)` */
export function variableHelp(name: string): string {
  const described = describedVariables.find((each) => each.name === name)
  assert(described !== undefined, `there is no variable ${name}`)
  return plainText(`${described.row.help} (${described.default})`)
}

/** Replaces the tables of the page, which stand between marks, and leaves the rest of it as it is. */
export function renewReference(page: string): string {
  const tables = {
    environment: variableTable(),
    ...Object.fromEntries(tableSections.map((name) => [name, settingTable(name)])),
  }
  return Object.entries(tables).reduce((text, [name, table]) => {
    const [opening, closing] = [`<!-- settings: ${name} -->\n`, `<!-- /settings: ${name} -->`]
    const [start, end] = [text.indexOf(opening), text.indexOf(closing)]
    assert(start >= 0 && end > start, `the page has no ${opening.trim()} … ${closing}`)
    return text.slice(0, start + opening.length) + table + text.slice(end)
  }, page)
}

/** The settings of `server` are in the table of variables. */
const tableSections = sectionNames.filter((name) => name !== 'server')

function variableTable(): string {
  const rows = describedVariables.map(({ name, row, default: byDefault, setting }) => {
    const inFile = setting === undefined ? ['', ''] : [`\`${setting[0]}\``, valuesText(setting[1])]
    return [`\`${name}\``, ...inFile, byDefault, meaning(row)]
  })
  return table(['variable', 'in the file', 'values', 'default', 'meaning'], rows)
}

function settingTable(name: (typeof tableSections)[number]): string {
  const rows = Object.entries<Setting>(sections[name].settings).map(([key, row]) => {
    return [`\`${key}\``, valuesText(row), defaultText(row), meaning(row)]
  })
  return table(['key', 'values', 'default', 'meaning'], rows)
}

function meaning({ help, details, needsRestart }: Described): string {
  const sentences = [help, details?.replace(/\.$/, ''), needsRestart && 'A change needs a restart']
  return sentences.filter(Boolean).join('. ')
}

function table(columns: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = rows.map((cells) => `|${cells.map((cell) => (cell === '' ? ' ' : ` ${cell} `)).join('|')}|`)
  return [`| ${columns.join(' | ')} |`, `|${'---|'.repeat(columns.length)}`, ...lines, ''].join('\n')
}

if (import.meta.main) {
  const root = `${import.meta.dir}/../..`
  const page = Bun.file(`${root}/docs/reference/configuration.md`)
  await page.write(renewReference(await page.text()))
  await Bun.write(`${root}/tollgate.schema.json`, renderJsonSchema())
}
