// The chart library, loaded by the usage page only.

export { default } from 'uplot'
