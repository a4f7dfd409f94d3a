/** @jsxImportSource preact */
// The first call, ready to be run: this gateway's address and a model that can be called now. The key stays in a
// variable, because no page has one.

import type { CatalogItem } from './api-answers.ts'
import { CodeBlock } from './resource-view.tsx'
import { type ListAnswer, useResource } from './use-resource.ts'

export function FirstCall({ address }: { readonly address: string }) {
  const { value } = useResource<ListAnswer<CatalogItem>>('/api/catalog')
  if (!value) return null
  const model = firstModel(value.data)
  if (!model) return <p>No model can be called yet. Set a provider’s key, or add a model to tollgate.yaml.</p>
  return (
    <>
      <p>Set TOLLGATE_KEY to a key (the first one is in the file first-key of the data folder), and run:</p>
      <CodeBlock code={curlOf(address, model.id)} what="call" />
    </>
  )
}

/** One that costs nothing real, where there is one. */
export function firstModel(models: readonly CatalogItem[]): CatalogItem | undefined {
  const callable = models.filter((model) => model.callable)
  const rehearsal = callable.filter(({ routes }) => routes.some((route) => route.rehearsal))
  return rehearsal.find(({ id }) => id.endsWith('/echo')) ?? rehearsal[0] ?? callable[0]
}

function curlOf(address: string, model: string): string {
  const body = JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: 'hello' }] })
  return `curl -N ${address}/v1/chat/completions \\
  -H "Authorization: Bearer $TOLLGATE_KEY" -H "Content-Type: application/json" \\
  -d '${body.replaceAll("'", `'\\''`)}'`
}
