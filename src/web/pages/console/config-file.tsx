/** @jsxImportSource preact */
// What operators declare in the configuration file: providers, models with their prices and routes, and aliases. The
// gateway writes the file after checking it, and each change is in effect at once.

import { type AnswerOf, type CallOf, callApi } from '../api.ts'
import type { FieldRow, Values } from '../form.tsx'
import type { Query } from '../hooks.ts'
import { type Column, DataTable } from '../table.tsx'
import { actionsColumn, emptyState, QueryView, Section } from './components.tsx'
import { FormDialog, useOverlay } from './overlay.tsx'

type ConfigFile = AnswerOf<'getConfigFile'>
type Change = NonNullable<CallOf<'updateConfigFile'>['body']>
type Entry = Readonly<Record<string, unknown>>

const text = (value: unknown): string => (value === undefined || value === null ? '' : String(value))

interface ConfigFileProps {
  readonly query: Query<ConfigFile>
  /** After a change is in effect. */
  onChanged(): void
}

export function ConfigFileSections({ query, onChanged }: ConfigFileProps) {
  const { open, ask } = useOverlay()
  const isWritable = query.value?.read_only === null
  const done = () => {
    query.reload()
    onChanged()
  }
  const send = (change: Change) => callApi('updateConfigFile', { body: { ...change, digest: query.value?.digest } })
  const remove = (id: string, change: Change) =>
    ask({
      title: `Remove ${id}?`,
      label: 'Remove',
      cancelLabel: 'Keep',
      intro: 'From the next request on, the gateway no longer uses it. Requests that are running finish.',
      send: () => send(change),
      onDone: done,
    })
  const editProvider = (entry: Entry | undefined) =>
    open(
      <FormDialog
        title={entry ? `Edit ${text(entry.id)}` : 'Add a provider'}
        label="Save provider"
        initial={entry ? valuesOf(entry) : { dialect: 'openai-chat' }}
        rows={providerRows(entry)}
        send={({ id, ...fields }) => {
          const { id: _, api_key: __, ...kept } = entry ?? {}
          return send({ providers: { [text(entry?.id ?? id)]: { ...kept, ...fields } } })
        }}
        onDone={done}
      />,
    )
  const editModel = (entry: Entry | undefined) =>
    open(
      <FormDialog
        title={entry ? `Edit ${text(entry.id)}` : 'Add a model'}
        label="Save model"
        initial={entry ? modelValues(entry) : {}}
        rows={modelRows(entry)}
        send={(body) => send({ models: { [text(entry?.id ?? body.id)]: modelEntry(entry, body) } })}
        onDone={done}
      />,
    )
  const addAlias = () =>
    open(
      <FormDialog
        title="Add an alias"
        label="Save alias"
        rows={[
          { name: 'name', label: 'Alias', hint: 'What callers pass as the model, for example fast', isRequired: true },
          { name: 'model', label: 'Model', hint: 'The id of a model, for example acme/large', isRequired: true },
        ]}
        send={({ name, model }) => send({ aliases: { [name]: model } })}
        onDone={done}
      />,
    )
  const setPrice = () =>
    open(
      <FormDialog
        title="Set the price of a model"
        label="Set price"
        intro="In effect from the next request on. It replaces the built-in price. If the file has a price for the model, edit the model instead."
        rows={[
          { name: 'model', label: 'Model', isRequired: true },
          ...priceRows.map((row) => ({ ...row, ...required(row) })),
        ]}
        send={({ model, input, output, cache_read }) =>
          callApi('putPrice', {
            model: text(model),
            body: { input: text(input), output: text(output), ...(cache_read && { cache_read: text(cache_read) }) },
          })
        }
        onDone={done}
      />,
    )
  const withActions = (
    columns: readonly Column<Entry>[],
    member: 'providers' | 'models' | 'aliases',
    edit?: (entry: Entry) => void,
  ) => {
    const actions = actionsColumn<Entry>((entry) => {
      const id = text(entry.id)
      const run = () => remove(id, { [member]: { [id]: null } })
      return [
        ...(edit ? [{ label: 'Edit', name: `Edit ${id}`, run: () => edit(entry) }] : []),
        { label: 'Remove', name: `Remove ${id}`, look: 'danger', run },
      ]
    })
    return isWritable ? [...columns, actions] : columns
  }
  return (
    <QueryView what="configuration file" query={query}>
      {(file) => (
        <>
          {file.read_only !== null && (
            <p class="hint">
              <code>{file.path}</code> cannot be changed here: {file.read_only}. Change it where it is deployed.
            </p>
          )}
          <Section
            title="Declared providers"
            action={isWritable && { label: 'Add provider', run: () => editProvider(undefined) }}
          >
            <DataTable
              caption="Providers in the configuration file"
              columns={withActions(providerColumns, 'providers', editProvider)}
              rows={file.providers}
              keyOf={({ id }) => text(id)}
              empty={emptyState(
                'No providers declared',
                'Add any host with an OpenAI, Anthropic or Gemini compatible API.',
              )}
            />
          </Section>
          <Section
            title="Declared models"
            action={isWritable && { label: 'Add model', run: () => editModel(undefined) }}
          >
            <DataTable
              caption="Models in the configuration file"
              columns={withActions(modelColumns, 'models', editModel)}
              rows={file.models}
              keyOf={({ id }) => text(id)}
              empty={emptyState(
                'No models declared',
                'Add a model with its price and routes, or replace a built-in one.',
              )}
            />
          </Section>
          <Section title="Aliases" action={isWritable && { label: 'Add alias', run: addAlias }}>
            <DataTable
              caption="Aliases in the configuration file"
              columns={withActions(aliasColumns, 'aliases')}
              rows={Object.entries(file.aliases).map(([id, model]) => ({ id, model }))}
              keyOf={({ id }) => text(id)}
              empty={emptyState('No aliases', 'An alias is another name for a model, which callers can use at once.')}
            />
          </Section>
          <Section title="Prices" action={{ label: 'Set price', run: setPrice }}>
            <p class="hint">
              The price of any model without a price in the file can be set here. Its history is on the page of the
              model; requests keep the price they were charged by.
            </p>
          </Section>
        </>
      )}
    </QueryView>
  )
}

const dialects = ['openai-chat', 'openai-responses', 'anthropic-messages', 'gemini', 'bedrock'].map((value) => ({
  value,
  label: value,
}))

const providerRows = (entry: Entry | undefined) =>
  [
    {
      name: 'id',
      label: 'Name',
      hint: 'Lower-case letters, digits and dashes; routes refer to it.',
      isRequired: entry === undefined,
      isShown: () => entry === undefined,
    },
    { name: 'dialect', label: 'API', options: dialects, isRequired: true },
    { name: 'base_url', label: 'Base URL', hint: 'For example https://api.example.com/v1', isRequired: true },
    {
      name: 'api_key',
      label: 'API key',
      kind: 'password',
      hint: entry
        ? 'Leave it empty to keep the key. A changed address needs it again.'
        : 'Stored in a private file of the data folder. It can be replaced, but never read back.',
    },
  ] as const satisfies readonly FieldRow[]

function valuesOf(entry: Entry): Values {
  return { dialect: text(entry.dialect), base_url: text(entry.base_url) }
}

const priceRows = [
  { name: 'input', label: 'Input price', hint: 'USD per million tokens', kind: 'decimal' },
  { name: 'output', label: 'Output price', hint: 'USD per million tokens', kind: 'decimal' },
  { name: 'cache_read', label: 'Cached input price', hint: 'Empty = as input', kind: 'decimal' },
] as const satisfies readonly FieldRow[]

const required = ({ name }: FieldRow) => (name === 'cache_read' ? {} : { isRequired: true })

const modelRows = (entry: Entry | undefined) =>
  [
    {
      name: 'id',
      label: 'Model id',
      hint: 'creator/model, for example acme/large',
      isRequired: entry === undefined,
      isShown: () => entry === undefined,
    },
    { name: 'name', label: 'Display name' },
    {
      name: 'routes',
      label: 'Routes',
      kind: 'lines',
      hint: 'One per line: the provider, a space, and its name for the model. The first ones are preferred.',
      isRequired: true,
    },
    { name: 'context_tokens', label: 'Context window', hint: 'Tokens', kind: 'whole' },
    { name: 'max_output_tokens', label: 'Largest output', hint: 'Tokens', kind: 'whole' },
    ...priceRows,
  ] as const satisfies readonly FieldRow[]

interface RouteEntry extends Entry {
  readonly provider: string
  readonly model: string
}

const routesOf = (entry: Entry | undefined): readonly RouteEntry[] =>
  Array.isArray(entry?.routes) ? (entry.routes as RouteEntry[]) : []
const priceOf = (entry: Entry | undefined): Entry =>
  typeof entry?.price === 'object' && entry.price !== null ? (entry.price as Entry) : {}

function modelValues(entry: Entry): Values {
  const fields = ['name', 'context_tokens', 'max_output_tokens'].map((name) => [name, text(entry[name])])
  const prices = priceRows.map(({ name }) => [name, text(priceOf(entry)[name])])
  const routes = routesOf(entry).map(({ provider, model }) => `${provider} ${model}`)
  return { ...Object.fromEntries([...fields, ...prices]), routes: routes.join('\n') }
}

/** Fields that the form does not have stay as they are. */
function modelEntry(before: Entry | undefined, body: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { id: _, routes, input, output, cache_read, ...fields } = body
  const { id: __, name: ___, context_tokens: ____, max_output_tokens: _____, ...kept } = before ?? {}
  const { cache_read: ______, ...keptPrice } = priceOf(before)
  const price = { ...keptPrice, ...(input !== undefined && { input }), ...(output !== undefined && { output }) }
  const next = (routes as readonly string[]).map((line) => {
    const [provider = '', ...rest] = line.split(/\s+/)
    const model = rest.join(' ')
    return routesOf(before).find((each) => each.provider === provider && each.model === model) ?? { provider, model }
  })
  return {
    ...kept,
    ...fields,
    routes: next,
    ...(Object.keys(price).length > 0 && { price: { ...price, ...(cache_read !== undefined && { cache_read }) } }),
  }
}

const providerColumns: readonly Column<Entry>[] = [
  { label: 'Provider', show: ({ id }) => <span class="row-name">{text(id)}</span> },
  { label: 'API', show: ({ dialect }) => text(dialect) },
  { label: 'Base URL', show: ({ base_url }) => <span class="wrap">{text(base_url) || 'inside the gateway'}</span> },
  { label: 'Key', show: ({ api_key }) => <span class="wrap">{text(api_key) || 'none'}</span> },
]

const modelColumns: readonly Column<Entry>[] = [
  { label: 'Model', show: ({ id }) => <span class="row-name wrap">{text(id)}</span> },
  {
    label: 'Routes',
    show: (entry) => (
      <span class="wrap">
        {routesOf(entry)
          .map(({ provider, model }) => `${provider} (${model})`)
          .join(', ')}
      </span>
    ),
  },
  {
    label: 'Price per 1M tokens',
    show: (entry) => {
      const { input, output } = priceOf(entry)
      if (entry.price === 'free') return 'free'
      return input === undefined ? 'none in the file' : `$${text(input)} in, $${text(output)} out`
    },
  },
]

const aliasColumns: readonly Column<Entry>[] = [
  { label: 'Alias', show: ({ id }) => <span class="row-name">{text(id)}</span> },
  { label: 'Model', show: ({ model }) => text(model) },
]
