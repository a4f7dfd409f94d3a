/** @jsxImportSource preact */
// What a page shows while it waits, when it was refused, and when it has its data: one decision for all of them.

import type { ComponentChildren } from 'preact'
import { Loading, Refused } from '../parts/resource-view.tsx'
import type { Loaded } from './use-load.ts'

export interface LoadedViewProps<Value> {
  /** `the keys` */
  readonly what: string
  readonly loaded: Loaded<Value>
  children(value: Value): ComponentChildren
}

export function LoadedView<Value>({ what, loaded, children }: LoadedViewProps<Value>) {
  const { value, refusal, again } = loaded
  return (
    <>
      {refusal && <Refused refusal={refusal} again={again} />}
      {value === undefined ? refusal === undefined && <Loading what={what} /> : children(value)}
    </>
  )
}
