#!/bin/bash

# Parameters
#SBATCH --account=nlp
#SBATCH --constraint='a100|h100'
#SBATCH --cpus-per-task=8
#SBATCH --error=JOBS/_slurm/%j_0_log.err
#SBATCH --exclusive
#SBATCH --gpus-per-node=1
#SBATCH --job-name=001-xlmr-fit-1
#SBATCH --kill-on-invalid-dep=yes
#SBATCH --mail-user='a b@c.d'
#SBATCH --mem=41472M
#SBATCH --nodes=1
#SBATCH --open-mode=append
#SBATCH --output=JOBS/_slurm/%j_0_log.out
#SBATCH --partition=gpu
#SBATCH --qos=long
#SBATCH --requeue
#SBATCH --signal=USR2@300
#SBATCH --time=90
#SBATCH --wckey=submitit

# setup
module load cuda
export HF_HUB_OFFLINE=1

# command
export SUBMITIT_EXECUTOR=slurm
srun --unbuffered --output JOBS/_slurm/%j_%t_log.out --error JOBS/_slurm/%j_%t_log.err --cpus-per-task=8 PYTHON -u -m submitit.core._submit JOBS/_slurm
